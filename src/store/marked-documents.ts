import type { Engine, Reads, Tx } from "./engine.ts";
import { type FoundRow, onPostgres } from "./marked-on-postgres.ts";
import { markTerm } from "./search-marks.ts";
import { operatorQuery, plainQuery, type SearchNode, toFts5 } from "./search-query.ts";
import { snippetOf } from "./search-snippet.ts";
import { indexedTerms } from "./search-terms.ts";
import { list, sql } from "./sql.ts";
import { tsvectorOf } from "./tsvector.ts";
import { type Leaf, leavesOf, weigh } from "./weigh.ts";

export interface MarkedDocument {
  readonly id: string;
  readonly text: string;
  /** What it can be asked for by, besides its words: whose it is, of what kind. */
  readonly marks: readonly string[];
}

export interface MarkedRequest {
  /** Of each of these lists a document has at least one mark. No list: all are looked through. */
  readonly marked: readonly (readonly string[])[];
  readonly text: string;
  /** `all` (default): every word; `any`: at least one; `operators`: the text is in the query syntax. */
  readonly match?: "all" | "any" | "operators";
  readonly limit: number;
}

/**
 * Where more than so many fit, the newest so many are weighed against each other. To weigh all of them takes as long as there are documents:
 * a word that a third of a million texts have took SQLite 150 ms (bm25 counts each of them), and PostgreSQL more.
 */
const WEIGHED = 200;
/** By so many letters SQLite finds beginnings of words in its index; of longer ones it collects all that have them first (migration 019). */
const INDEXED_LETTERS = 4;
/** Among so many that have the first letters those are looked for that have the whole beginning. */
const LOOKED_AT = 2_000;
/** Of a long text its beginning is weighed. */
const WEIGHED_CHARACTERS = 8_000;
const SHOWN_CHARACTERS = 20_000;

export interface MarkedHit {
  readonly id: string;
  readonly score: number;
  /** With `**` around what was found. */
  readonly snippet: string;
  readonly at: number;
}

interface CandidateRow {
  readonly doc: number;
  readonly id: string;
  readonly at: number;
  readonly terms: string;
}

/**
 * Full text with marks. Marks are words of the index, so that whoever may see few documents has few looked at: a search steps from one to the next
 * that has all of them. What a viewer may see is part of the query, not a filter over its results.
 */
export class MarkedDocuments {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async put(tx: Tx, document: MarkedDocument): Promise<void> {
    await this.remove(tx, document.id);
    await this.add(tx, document);
  }

  /** One that is not there yet. */
  async add(tx: Tx, document: MarkedDocument): Promise<void> {
    const { id } = document;
    const text = document.text.replaceAll("\0", " ");
    const marks = document.marks.map(markTerm);
    const terms = [...indexedTerms(text), ...marks];
    if (this.#engine.dialect.name === "postgres") {
      await tx.run`insert into marked_documents (id, body, terms, marks, at)
        values (${id}, ${text}, cast(${tsvectorOf(terms)} as tsvector), ${marks.join(" ")}, now_ms())`;
      return;
    }
    const joined = terms.join(" ");
    const doc = await tx.insert`insert into marked_documents (id, body, terms, marks, at)
      values (${id}, ${text}, ${joined}, ${marks.join(" ")}, now_ms()) returning doc`;
    await tx.run`insert into marked_terms (rowid, terms) values (${doc}, ${joined})`;
  }

  async remove(tx: Tx, id: string): Promise<boolean> {
    if (this.#engine.dialect.name === "postgres") return (await tx.run`delete from marked_documents where id = ${id}`) > 0;
    const row = await tx.get<{ doc: number; terms: string }>`delete from marked_documents where id = ${id} returning doc, terms`;
    if (!row) return false;
    await tx.run`insert into marked_terms (marked_terms, rowid, terms) values ('delete', ${row.doc}, ${row.terms})`;
    return true;
  }

  async find({ text, match = "all", marked, limit }: MarkedRequest): Promise<MarkedHit[]> {
    const { dialect, reads } = this.#engine;
    const words = match === "operators" ? operatorQuery(text) : plainQuery(text, match);
    if (!words || marked.some((marks) => marks.length === 0)) return [];
    const leaves = leavesOf(words);
    const node: SearchNode = marked.length === 0 ? words : { is: "and", parts: [words, ...marked.map(anyOf)] };
    const found =
      dialect.name === "postgres" ? await onPostgres(reads, node, words, WEIGHED, limit) : await onSqlite(reads, node, leaves, limit);
    if (found.length === 0) return [];
    const bodies = await reads.all<{ doc: number; body: string }>`select doc, substr(body, 1, ${SHOWN_CHARACTERS}) as body
      from marked_documents where doc in ${list(found.map(({ doc }) => doc))}`;
    const texts = new Map(bodies.map(({ doc, body }) => [doc, body]));
    const isWanted = wantedBy(leaves);
    return found.map(({ doc, id, at, score }) => ({ id, at, score, snippet: snippetOf(texts.get(doc) ?? "", isWanted, "**", "**") }));
  }
}

function anyOf(marks: readonly string[]): SearchNode {
  return { is: "or", parts: marks.map((mark) => ({ is: "phrase", terms: [markTerm(mark)] })) };
}

async function onSqlite(reads: Reads, node: SearchNode, leaves: readonly Leaf[], limit: number): Promise<FoundRow[]> {
  const rows = (await byFirstLetters(reads, node)) ?? (await newestOnSqlite(reads, node, WEIGHED, []));
  const scores = weigh(
    rows.map(({ terms }) => terms),
    leaves,
  );
  return rows
    .map(({ doc, id, at }, index) => ({ doc, id, at, score: scores[index] as number }))
    .sort((a, b) => b.score - a.score || b.doc - a.doc)
    .slice(0, limit);
}

function newestOnSqlite(reads: Reads, node: SearchNode, amongNewest: number, beginnings: readonly string[]): Promise<CandidateRow[]> {
  const have = beginnings.reduce((all, beginning) => sql`${all} and instr(' ' || d.terms, ${` ${beginning}`}) > 0`, sql`1 = 1`);
  return reads.all<CandidateRow>`select d.doc, d.id, d.at, substr(d.terms, 1, ${WEIGHED_CHARACTERS}) as terms
    from (select rowid as doc from marked_terms where marked_terms match ${toFts5(node)} order by rowid desc limit ${amongNewest}) as newest
    join marked_documents as d on d.doc = newest.doc where ${have} order by d.doc desc limit ${WEIGHED}`;
}

/** Null: there is no long beginning that all must have, or too few of the newest have it. */
async function byFirstLetters(reads: Reads, node: SearchNode): Promise<CandidateRow[] | null> {
  const beginnings: string[] = [];
  const loose = shortened(node, beginnings);
  if (beginnings.length === 0) return null;
  const found = await newestOnSqlite(reads, loose, LOOKED_AT, beginnings);
  return found.length === WEIGHED ? found : null;
}

/** What all must have, by the letters the index knows; the whole beginnings are put to the others. */
function shortened(node: SearchNode, beginnings: string[]): SearchNode {
  if (node.is === "and") return { is: "and", parts: node.parts.map((part) => shortened(part, beginnings)) };
  const letters = node.is === "prefix" ? [...node.term] : [];
  if (letters.length <= INDEXED_LETTERS) return node;
  beginnings.push(letters.join(""));
  return { is: "prefix", term: letters.slice(0, INDEXED_LETTERS).join("") };
}

function wantedBy(leaves: readonly Leaf[]): (term: string) => boolean {
  const whole = new Set(leaves.flatMap((leaf) => (leaf.is === "phrase" ? leaf.terms : [])));
  const begun = leaves.flatMap((leaf) => (leaf.is === "prefix" ? [leaf.term] : []));
  return (term) => whole.has(term) || begun.some((beginning) => term.startsWith(beginning));
}

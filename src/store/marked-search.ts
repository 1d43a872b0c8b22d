import type { Dialect, Reads } from "./engine.ts";
import { markTerm } from "./search-marks.ts";
import { operatorQuery, plainQuery, type SearchNode, toFts5, toTsquery } from "./search-query.ts";
import { snippetOf } from "./search-snippet.ts";
import { list } from "./sql.ts";
import { type Leaf, leavesOf, weigh } from "./weigh.ts";

export interface MarkedRequest {
  /** Of each of these lists a document has at least one mark. */
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
const WEIGHED = 500;
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

interface FoundRow {
  readonly doc: number;
  readonly id: string;
  readonly at: number;
  readonly score: number;
}

/** Marks are words of the index, so that whoever may see few documents has few looked at: a search steps from one to the next that has all words. */
export async function findMarked(database: Dialect["name"], reads: Reads, request: MarkedRequest): Promise<MarkedHit[]> {
  const { text, match = "all", marked, limit } = request;
  const words = match === "operators" ? operatorQuery(text) : plainQuery(text, match);
  if (!words || marked.some((marks) => marks.length === 0)) return [];
  const leaves = leavesOf(words);
  const node: SearchNode = { is: "and", parts: [...marked.map(anyOf), words] };
  const found = database === "postgres" ? await onPostgres(reads, node, words, limit) : await onSqlite(reads, node, leaves, limit);
  if (found.length === 0) return [];
  const bodies = await reads.all<{ doc: number; body: string }>`select doc, substr(body, 1, ${SHOWN_CHARACTERS}) as body from documents
    where doc in ${list(found.map(({ doc }) => doc))}`;
  const texts = new Map(bodies.map(({ doc, body }) => [doc, body]));
  const isWanted = wantedBy(leaves);
  return found.map(({ doc, id, at, score }) => ({ id, at, score, snippet: snippetOf(texts.get(doc) ?? "", isWanted, "**", "**") }));
}

function anyOf(marks: readonly string[]): SearchNode {
  return { is: "or", parts: marks.map((mark) => ({ is: "phrase", terms: [markTerm(mark)] })) };
}

async function onSqlite(reads: Reads, node: SearchNode, leaves: readonly Leaf[], limit: number): Promise<FoundRow[]> {
  const rows = await reads.all<CandidateRow>`select d.doc, d.id, d.at, substr(d.terms, 1, ${WEIGHED_CHARACTERS}) as terms
    from (select rowid as doc from document_terms where document_terms match ${toFts5(node)} order by rowid desc limit ${WEIGHED}) as newest
    join documents as d on d.doc = newest.doc`;
  const scores = weigh(
    rows.map(({ terms }) => terms),
    leaves,
  );
  return rows
    .map(({ doc, id, at }, index) => ({ doc, id, at, score: scores[index] as number }))
    .sort((a, b) => b.score - a.score || b.doc - a.doc)
    .slice(0, limit);
}

function onPostgres(reads: Reads, node: SearchNode, words: SearchNode, limit: number): Promise<FoundRow[]> {
  return reads.all<FoundRow>`select d.doc, d.id, d.at, ts_rank_cd(d.terms, cast(${toTsquery(words)} as tsquery), 1) as score
    from (select doc from documents where terms @@ cast(${toTsquery(node)} as tsquery) order by doc desc limit ${WEIGHED}) as newest
    join documents as d on d.doc = newest.doc order by score desc, d.doc desc limit ${limit}`;
}

function wantedBy(leaves: readonly Leaf[]): (term: string) => boolean {
  const whole = new Set(leaves.flatMap((leaf) => (leaf.is === "phrase" ? leaf.terms : [])));
  const begun = leaves.flatMap((leaf) => (leaf.is === "prefix" ? [leaf.term] : []));
  return (term) => whole.has(term) || begun.some((beginning) => term.startsWith(beginning));
}

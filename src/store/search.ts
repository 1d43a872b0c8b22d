import { encodeScope, type Scope, scopeUpperBound } from "../kernel/scope.ts";
import { TimeSlice } from "../kernel/time-slice.ts";
import type { Engine, Reads, Tx } from "./engine.ts";
import { scopeKey } from "./keys.ts";
import { operatorQuery, plainQuery, type SearchNode, toFts5, toTsquery } from "./search-query.ts";
import { snippetOf } from "./search-snippet.ts";
import { indexedTerms, termsOf } from "./search-terms.ts";
import { code, list, SqlFragment, sql } from "./sql.ts";
import { tsvectorOf } from "./tsvector.ts";

export interface SearchDocument {
  readonly collection: string;
  readonly id: string;
  /** Where the document lies; a search sees only the scopes it names and what is below them. */
  readonly scope: Scope;
  readonly text: string;
}

export interface SearchRequest {
  readonly collection: string;
  readonly scopes: readonly Scope[];
  /** What of these scopes is left out. */
  readonly except?: Scope;
  /** Documents that lie exactly here are looked through too. */
  readonly exactly?: readonly Scope[];
  readonly text: string;
  readonly limit: number;
  /** A word that must be there whatever else is. With a rare one a search among many documents looks at few, which scopes alone cannot do. */
  readonly require?: string;
  /** False: the newest first, without score and snippet. To weigh a word SQLite looks at everything that has it, in every scope. */
  readonly ranked?: boolean;
  /** `all` (default): every word; `any`: at least one; `operators`: the text is in the query syntax. */
  readonly match?: "all" | "any" | "operators";
}

export interface SearchHit {
  readonly id: string;
  readonly score: number;
  readonly snippet: string;
  readonly at: number;
}

interface HitRow {
  readonly id: string;
  readonly body: string;
  readonly score: number;
  readonly at: number;
}

/** Full text on both databases. What a viewer may see is part of the query, not a filter over its results. */
export class Search {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async put(tx: Tx, document: SearchDocument): Promise<void> {
    await this.remove(tx, document.collection, document.id);
    await this.add(tx, document);
  }

  /** One that is not there yet. */
  async add(tx: Tx, document: SearchDocument): Promise<void> {
    const { collection, id } = document;
    const text = document.text.replaceAll("\0", " ");
    const terms = indexedTerms(text);
    const scope = scopeKey(document.scope);
    if (this.#engine.dialect.name === "postgres") {
      await tx.run`insert into documents (collection, id, scope, body, terms, at)
        values (${collection}, ${id}, ${scope}, ${text}, cast(${tsvectorOf(terms)} as tsvector), now_ms())`;
      return;
    }
    const joined = terms.join(" ");
    const doc = await tx.insert`insert into documents (collection, id, scope, body, terms, at)
      values (${collection}, ${id}, ${scope}, ${text}, ${joined}, now_ms()) returning doc`;
    await tx.run`insert into document_terms (rowid, terms) values (${doc}, ${joined})`;
  }

  async remove(tx: Tx, collection: string, id: string): Promise<boolean> {
    if (this.#engine.dialect.name === "postgres") {
      return (await tx.run`delete from documents where collection = ${collection} and id = ${id}`) > 0;
    }
    const row = await tx.get<{ doc: number; terms: string }>`
      delete from documents where collection = ${collection} and id = ${id} returning doc, terms`;
    if (!row) return false;
    await tx.run`insert into document_terms (document_terms, rowid, terms) values ('delete', ${row.doc}, ${row.terms})`;
    return true;
  }

  /** `reads`: the open transaction, where what is found decides about a write. */
  async find(request: SearchRequest, reads: Reads = this.#engine.reads): Promise<SearchHit[]> {
    const match = request.match ?? "all";
    const wanted = match === "operators" ? operatorQuery(request.text) : plainQuery(request.text, match);
    const required = request.require === undefined ? null : plainQuery(request.require, "all");
    const node: SearchNode | null = wanted && required ? { is: "and", parts: [required, wanted] } : wanted;
    if (!node || (request.scopes.length === 0 && !request.exactly?.length)) return [];
    if (request.ranked === false) return this.#newest(reads, node, request.collection, within(request), request.limit);
    const rows = await this.#rows(reads, node, request.collection, within(request), request.limit);
    const words = new Set(termsOf(request.text));
    const isWanted = (term: string): boolean => words.has(term);
    const slice = new TimeSlice();
    const hits: SearchHit[] = [];
    for (const row of rows) {
      // In a long text that has the words at its end, or only by their beginnings, looking for a snippet takes milliseconds.
      if (slice.isOver) await slice.next();
      hits.push({ id: row.id, score: row.score, snippet: snippetOf(row.body, isWanted), at: row.at });
    }
    return hits;
  }

  #newest(reads: Reads, node: SearchNode, collection: string, scopes: SqlFragment, limit: number): Promise<SearchHit[]> {
    if (this.#engine.dialect.name === "postgres") {
      return reads.all<SearchHit>`select id, 0 as score, '' as snippet, at from documents
        where terms @@ cast(${toTsquery(node)} as tsquery) and collection = ${collection} and ${scopes} order by at desc, doc desc limit ${limit}`;
    }
    return reads.all<SearchHit>`select id, 0 as score, '' as snippet, at from document_terms
      join documents on documents.doc = document_terms.rowid
      where document_terms match ${toFts5(node)} and collection = ${collection} and ${scopes}
      order by at desc, documents.doc desc limit ${limit}`;
  }

  #rows(reads: Reads, node: SearchNode, collection: string, scopes: SqlFragment, limit: number): Promise<HitRow[]> {
    if (this.#engine.dialect.name === "postgres") {
      return reads.all<HitRow>`
        select id, body, ts_rank_cd(terms, query, 1) as score, at from documents, cast(${toTsquery(node)} as tsquery) as query
        where terms @@ query and collection = ${collection} and ${scopes} order by score desc, at desc, doc desc limit ${limit}`;
    }
    return reads.all<HitRow>`
      select id, body, -bm25(document_terms) as score, at from document_terms join documents on documents.doc = document_terms.rowid
      where document_terms match ${toFts5(node)} and collection = ${collection} and ${scopes}
      order by score desc, at desc, documents.doc desc limit ${limit}`;
  }
}

function within({ scopes, except, exactly = [] }: SearchRequest): SqlFragment {
  const ranges = scopes.map(inRange);
  const wide = ranges.length === 0 ? code("1 = 0") : new SqlFragment(["(", ...ranges.slice(1).map(() => " or "), ")"], ranges);
  const narrowed = except === undefined ? wide : sql`(${wide} and not ${inRange(except)})`;
  return exactly.length === 0 ? narrowed : sql`(${narrowed} or scope in ${list(exactly.map(encodeScope))})`;
}

function inRange(scope: Scope): SqlFragment {
  const prefix = encodeScope(scope);
  return sql`(scope >= ${prefix} and scope < ${scopeUpperBound(prefix)})`;
}

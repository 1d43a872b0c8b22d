import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { parsePostgresUrl } from "../../src/store/postgres/postgres-url.ts";
import { stem } from "../../src/store/search-terms.ts";
import { serve } from "../child.ts";
import { quantile } from "../spread.ts";
import { COMMON, idOf, RARE, randomFrom } from "./texts.ts";

export interface RawTask {
  readonly location: string;
  readonly tasks: number;
  readonly queries: number;
}

export interface Raw {
  readonly common: number;
  readonly ranked: number;
  readonly rare: number;
  readonly id: number;
}

/** What the database alone takes for the same: ids of rows that have a word, a row by its key. p99 in milliseconds. */
await serve<RawTask, Raw>(async ({ location, tasks, queries }) => {
  const random = randomFrom(7);
  const anyId = (): string => idOf(Math.floor(random() * tasks));
  const ask = location.startsWith("sqlite:") ? sqlite(location.slice("sqlite:".length)) : await postgres(location);
  const p99 = async (times: number, query: () => unknown): Promise<number> => {
    const taken: number[] = [];
    for (let index = 0; index < times; index++) {
      const began = performance.now();
      await query();
      taken.push(performance.now() - began);
    }
    return quantile(
      taken.sort((a, b) => a - b),
      0.99,
    );
  };
  const raw = {
    common: await p99(queries, () => ask.words(stem(COMMON))),
    ranked: await p99(3, () => ask.ranked(stem(COMMON))),
    rare: await p99(queries, () => ask.words(stem(RARE))),
    id: await p99(queries, () => ask.id(anyId())),
  };
  await ask.close();
  return raw;
});

interface Asked {
  words(word: string): unknown;
  ranked(word: string): unknown;
  id(id: string): unknown;
  close(): unknown;
}

function sqlite(path: string): Asked {
  const database = new DatabaseSync(path, { readOnly: true });
  const words = database.prepare("select rowid from marked_terms where marked_terms match ? order by rowid desc limit 20");
  const ranked = database.prepare("select rowid from marked_terms where marked_terms match ? order by bm25(marked_terms) limit 20");
  const id = database.prepare("select id, agent, goal from tasks where id = ?");
  return {
    words: (word) => words.all(`"${word}"`),
    ranked: (word) => ranked.all(`"${word}"`),
    id: (wanted) => id.get(wanted),
    close: () => database.close(),
  };
}

async function postgres(location: string): Promise<Asked> {
  const { config, schema } = parsePostgresUrl(location);
  const client = new pg.Client(config);
  await client.connect();
  await client.query(`set search_path to "${schema}"`);
  return {
    words: (word) => client.query("select doc from marked_documents where terms @@ $1::tsquery order by doc desc limit 20", [`'${word}'`]),
    ranked: (word) =>
      client.query("select doc from marked_documents where terms @@ $1::tsquery order by ts_rank_cd(terms, $1::tsquery) desc limit 20", [
        `'${word}'`,
      ]),
    id: (wanted) => client.query("select id, agent, goal from tasks where id = $1", [wanted]),
    close: () => client.end(),
  };
}

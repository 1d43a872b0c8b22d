import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { MARKS } from "../../src/records/tasks/task-index.ts";
import { parsePostgresUrl } from "../../src/store/postgres/postgres-url.ts";
import { markTerm } from "../../src/store/search-marks.ts";
import { indexedTerms } from "../../src/store/search-terms.ts";
import { openStore } from "../../src/store/store.ts";
import { tsvectorOf } from "../../src/store/tsvector.ts";
import { serve } from "../child.ts";
import { agentOf, goalOf, idOf, randomFrom, resultOf } from "./texts.ts";

export interface FillTask {
  readonly location: string;
  readonly from: number;
  readonly to: number;
}

const AT_ONCE = 20_000;

interface Filled {
  readonly id: string;
  readonly kind: string;
  readonly agent: string;
  readonly from: string;
  readonly goal: string;
  readonly result: string;
  readonly parent: string | null;
  readonly viewers: readonly string[];
  readonly body: string;
  readonly terms: readonly string[];
  readonly marks: string;
}

/**
 * The rows that opening and ending a task leaves (task-rows.ts), written past the store, many at once: by its verbs a million would take an hour.
 * Two of three are children of the task before them; a few are of somebody who has opened little.
 */
function taskAt(index: number, random: () => number): Filled {
  const isChild = index % 3 !== 0;
  const top = index - (index % 3);
  const topOpener = top % 5_001 === 0 ? "seldom" : "operator";
  const topAgent = agentOf(top / 3);
  const agent = isChild ? agentOf(index * 31) : topAgent;
  const from = isChild ? topAgent : topOpener;
  const viewers = [...new Set([topOpener, topAgent, agent])];
  const [id, goal, result] = [idOf(index), goalOf(index, random), resultOf(random)];
  const body = `${goal}\n${result}`;
  const marks = [...viewers.map(MARKS.viewer), MARKS.agent(agent), MARKS.status("completed")].map(markTerm);
  const terms = [...indexedTerms(body), ...marks];
  const parent = isChild ? idOf(top) : null;
  return { id, kind: isChild ? "delegate" : "api", agent, from, goal, result, parent, viewers, body, terms, marks: marks.join(" ") };
}

await serve<FillTask, { perSecond: number }>(async ({ location, from, to }) => {
  await (await openStore(location)).close();
  const write = location.startsWith("sqlite:") ? sqlite(location.slice("sqlite:".length)) : await postgres(location);
  const random = randomFrom(from + 1);
  const began = performance.now();
  for (let start = from; start < to; start += AT_ONCE) {
    const count = Math.min(AT_ONCE, to - start);
    await write.these(Array.from({ length: count }, (_, offset) => taskAt(start + offset, random)));
  }
  await write.done();
  return { perSecond: (to - from) / ((performance.now() - began) / 1_000) };
});

interface Write {
  these(tasks: readonly Filled[]): void | Promise<void>;
  done(): void | Promise<void>;
}

function sqlite(path: string): Write {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; pragma synchronous = off; pragma cache_size = -400000");
  const task =
    database.prepare(`insert into tasks (id, kind, agent, opened_by, goal, status, result, parent_id, root_id, depth, max_depth, chain,
    spec, viewers, indexed, created_at, ended_at) values (?, ?, ?, ?, ?, 'completed', ?, ?, ?, 0, 2, '[]', '{}', ?, 1, ?, ?)`);
  const viewer = database.prepare("insert into task_viewers (viewer, task_id) values (?, ?)");
  const document = database.prepare("insert into marked_documents (id, body, terms, marks, at) values (?, ?, ?, ?, ?) returning doc");
  const words = database.prepare("insert into marked_terms (rowid, terms) values (?, ?)");
  const these = (tasks: readonly Filled[]): void => {
    database.exec("begin");
    for (const { id, kind, agent, from, goal, result, parent, viewers, body, terms, marks } of tasks) {
      const now = Date.now();
      task.run(id, kind, agent, from, goal, JSON.stringify(result), parent, parent ?? id, JSON.stringify(viewers), now, now);
      const joined = terms.join(" ");
      const { doc } = document.get(id, body, joined, marks, now) as { doc: number };
      words.run(doc, joined);
    }
    const seen = tasks.flatMap(({ id, viewers }) => viewers.map((name) => [name, id] as const));
    for (const [name, id] of seen.sort(([a, first], [b, second]) => (a < b || (a === b && first < second) ? -1 : 1))) viewer.run(name, id);
    database.exec("commit");
  };
  const done = (): void => {
    database.exec("insert into marked_terms (marked_terms, rank) values ('hashsize', 1048576)");
    database.exec("pragma wal_checkpoint(truncate)");
    database.close();
  };
  return { these, done };
}

async function postgres(location: string): Promise<Write> {
  const { config, schema } = parsePostgresUrl(location);
  const client = new pg.Client(config);
  await client.connect();
  await client.query(`set search_path to "${schema}"; set synchronous_commit to off`);
  const column = <T>(tasks: readonly Filled[], of: (task: Filled) => T): T[] => tasks.map(of);
  const these = async (tasks: readonly Filled[]): Promise<void> => {
    await client.query("begin");
    await client.query(
      `insert into tasks (id, kind, agent, opened_by, goal, status, result, parent_id, root_id, depth, max_depth, chain, spec, viewers,
        indexed, created_at, ended_at) select id, kind, agent, opener, goal, 'completed', result, parent, coalesce(parent, id), 0, 2, '[]', '{}', viewers,
        1, now_ms(), now_ms() from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
        as t (id, kind, agent, opener, goal, result, parent, viewers)`,
      [
        column(tasks, ({ id }) => id),
        column(tasks, ({ kind }) => kind),
        column(tasks, ({ agent }) => agent),
        column(tasks, ({ from }) => from),
        column(tasks, ({ goal }) => goal),
        column(tasks, ({ result }) => JSON.stringify(result)),
        column(tasks, ({ parent }) => parent),
        column(tasks, ({ viewers }) => JSON.stringify(viewers)),
      ],
    );
    const seen = tasks.flatMap(({ id, viewers }) => viewers.map((name) => [name, id] as const));
    await client.query("insert into task_viewers (viewer, task_id) select * from unnest($1::text[], $2::text[])", [
      seen.map(([name]) => name),
      seen.map(([, id]) => id),
    ]);
    await client.query(
      `insert into marked_documents (id, body, terms, marks, at) select id, body, terms::tsvector, marks, now_ms()
        from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as t (id, body, terms, marks)`,
      [
        column(tasks, ({ id }) => id),
        column(tasks, ({ body }) => body),
        column(tasks, ({ terms }) => tsvectorOf(terms)),
        column(tasks, ({ marks }) => marks),
      ],
    );
    await client.query("commit");
  };
  const done = async (): Promise<void> => {
    await client.query("vacuum analyze marked_documents");
    await client.query("vacuum analyze tasks");
    await client.query("vacuum analyze task_viewers");
    await client.end();
  };
  return { these, done };
}

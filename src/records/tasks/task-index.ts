import { isTaskOver, type TaskStatus } from "../../contract/tasks.ts";
import type { Tx } from "../../store/engine.ts";
import type { MarkedDocument } from "../../store/marked-documents.ts";
import { list, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";

/** What tasks are asked for by. */
export const MARKS = {
  viewer: (name: string): string => `viewer ${name}`,
  agent: (id: string): string => `agent ${id}`,
  /** Those that are not over share one: what they do meanwhile is not told to the index. */
  status: (status: TaskStatus): string => `status ${isTaskOver(status) ? status : "open"}`,
};

/** While these are written nobody else writes on SQLite: few at a time, so that nobody waits long. */
const AT_ONCE = 20;
const IN_A_ROUND = 500;

interface Row {
  readonly id: string;
  readonly agent: string | null;
  readonly goal: string;
  readonly status: TaskStatus;
  readonly result: string | null;
  readonly error: string | null;
  readonly viewers: string;
}

/** For the pulse: whether one is not findable yet. */
export const TASKS_UNINDEXED = sql`exists (select 1 from tasks where indexed = 0)`;

/**
 * Makes tasks findable by their words, a moment after they were opened or have ended: in the transactions that open and end them it would take as long
 * as all the rest. Any node may call it, often. Answers how many it were.
 */
export async function indexTasks(store: Store, most: number = IN_A_ROUND): Promise<number> {
  let done = 0;
  while (done < most) {
    if (!(await store.read.get`select 1 from tasks where indexed = 0 limit 1`)) break;
    const more = await store.transact("index tasks", (tx) => indexSome(store, tx, Math.min(AT_ONCE, most - done)), "locked");
    if (more === 0) break;
    done += more;
  }
  return done;
}

async function indexSome(store: Store, tx: Tx, most: number): Promise<number> {
  // Somebody else who does it at the same time takes others.
  const rows = await tx.all<Row>`select id, agent, goal, status, result, error, viewers from tasks where indexed = 0
    order by id limit ${most} ${store.dialect.skipLocked}`;
  for (const row of rows) await store.marked.put(tx, documentOf(row));
  if (rows.length > 0) await tx.run`update tasks set indexed = 1 where id in ${list(rows.map(({ id }) => id))}`;
  return rows.length;
}

function documentOf({ id, agent, goal, status, result, error, viewers }: Row): MarkedDocument {
  const said: unknown = result === null ? null : JSON.parse(result);
  const failure = error === null ? null : (JSON.parse(error) as { readonly code: string; readonly message: string });
  const parts = [
    goal,
    ...(said === null ? [] : [typeof said === "string" ? said : JSON.stringify(said)]),
    ...(failure ? [`${failure.code}: ${failure.message}`] : []),
  ];
  const names = JSON.parse(viewers) as string[];
  const marks = [...names.map(MARKS.viewer), ...(agent === null ? [] : [MARKS.agent(agent)]), MARKS.status(status)];
  return { id, text: parts.join("\n"), marks };
}

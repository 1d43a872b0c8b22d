import { isTaskOver, type TaskHit, type TaskSearchQuery } from "../../contract/tasks.ts";
import { isFailure } from "../../kernel/failure.ts";
import { list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { idsBeginning } from "./seen-tasks.ts";
import { indexTasks, MARKS } from "./task-index.ts";
import { STATUS } from "./task-view.ts";
import type { Eyes } from "./task-viewers.ts";

export interface FoundTasks {
  readonly hits: TaskHit[];
}

/** Letters and digits as our ids have them. */
const LIKE_AN_ID = /^[0-9a-hjkmnp-tv-z]{4,20}$/;
const GOAL_CHARACTERS = 300;
const SHOWN_WITH_ID = 120;
const WAITED_FOR = 1_000;
const OPEN_LOOKED_AT = 200;
/** Of an id that was found by its beginning: above everything that words come to. */
const ID_SCORE = 1_000;

interface HitRow {
  readonly id: string;
  readonly agent: string | null;
  readonly opened_by: string;
  readonly goal: string;
  readonly status: TaskHit["status"];
  readonly created_at: number;
}

/**
 * By words of goal, result and error, and by the beginning of an id. Whose tasks are looked through is part of both queries: nothing of
 * others is found first and left out afterwards.
 */
export async function searchTasks(store: Store, eyes: Eyes, query: TaskSearchQuery): Promise<FoundTasks> {
  const { q, limit, agent, status, match } = query;
  if (eyes !== "all" && eyes.length === 0) return { hits: [] };
  await upToDate(store);
  const like = q.trim().toLowerCase();
  const beginning: Promise<string[]> | string[] = LIKE_AN_ID.test(like) ? idsBeginning(store.read, eyes, like, limit) : [];
  const marked = [
    ...(eyes === "all" ? [] : [eyes.map(MARKS.viewer)]),
    ...(agent === undefined ? [] : [[MARKS.agent(agent)]]),
    ...(status === undefined ? [] : [[MARKS.status(status)]]),
  ];
  // What an open task does meanwhile is not in the index: more are taken than wanted, and the others left out below.
  const wanted = status === undefined || isTaskOver(status) ? limit : OPEN_LOOKED_AT;
  const [ids, words] = await Promise.all([beginning, store.marked.find({ marked, text: q, match, limit: wanted })]);
  const known = new Map(words.map((hit) => [hit.id, hit]));
  const rows = await rowsOf(store, [...ids, ...known.keys()]);
  const fitting = (id: string): HitRow[] => {
    const row = rows.get(id);
    return row && (agent === undefined || row.agent === agent) && (status === undefined || row.status === status) ? [row] : [];
  };
  const byId = ids
    .flatMap(fitting)
    .map((row): TaskHit => hitOf(row, snippetOfId(row, like.length), ID_SCORE + (known.get(row.id)?.score ?? 0)));
  const byWord = words
    .filter(({ id }) => !ids.includes(id))
    .flatMap(({ id, snippet, score }) => fitting(id).map((row) => hitOf(row, snippet, score)));
  // A short beginning may be that of very many: what has the word is told all the same.
  const first = byId.slice(0, Math.max(Math.ceil(limit / 2), limit - byWord.length));
  return { hits: [...first, ...byWord].slice(0, limit) };
}

/** What was opened or has ended until now is found, up to a backlog that nobody should wait for. */
async function upToDate(store: Store): Promise<void> {
  try {
    await indexTasks(store, WAITED_FOR);
  } catch (error) {
    // Where nothing can be written, what is indexed can still be searched.
    if (!isFailure(error)) throw error;
  }
}

async function rowsOf(store: Store, ids: readonly string[]): Promise<ReadonlyMap<string, HitRow>> {
  if (ids.length === 0) return new Map();
  const rows = await store.read
    .all<HitRow>`select t.id, t.agent, t.opened_by, substr(t.goal, 1, ${GOAL_CHARACTERS}) as goal, ${STATUS} as status,
    t.created_at from tasks as t where t.id in ${list([...new Set(ids)])}`;
  return new Map(rows.map((row) => [row.id, row]));
}

function hitOf(row: HitRow, snippet: string, score: number): TaskHit {
  const { id, agent, opened_by: from, goal, status, created_at: createdAt } = row;
  return { id, agent, from, goal, status, snippet, score, createdAt };
}

function snippetOfId({ id, goal }: HitRow, found: number): string {
  return `**${id.slice(0, found)}**${id.slice(found)} ${goal.slice(0, SHOWN_WITH_ID).replace(/\s+/g, " ")}`;
}

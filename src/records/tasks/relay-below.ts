import { Buffer } from "node:buffer";
import type { TaskRelay } from "../../contract/tasks.ts";
import { tokensOfBytes } from "../../kernel/token-estimate.ts";
import type { Reads } from "../../store/engine.ts";
import { code } from "../../store/sql.ts";

/** Deeper than any chain that can be opened: whoever writes rows by hand cannot make a circle of them. */
const DEEPEST = 100;
const DELEGATED = code("('child', 'delegate', 'remote')");

/** The relay meter of a task and all below it: docs/relay.md says what is counted. Null: nothing among them was delegated. */
export async function relayBelow(reads: Reads, id: string): Promise<TaskRelay | null> {
  const delegated = await reads.all<{ id: string; result: string | null }>`with recursive tree (id, level) as (
      select t.id, 0 from tasks as t where t.id = ${id}
      union all select t.id, tree.level + 1 from tree join tasks as t on t.parent_id = tree.id where tree.level < ${DEEPEST})
    select t.id, t.result from tree cross join tasks as t where t.id = tree.id and t.kind in ${DELEGATED}`;
  if (delegated.length === 0) return null;
  const returned = delegated.flatMap((task) => (task.result === null ? [] : [{ id: task.id, words: wordsOf(task.result) }]));
  return {
    returned: total(returned.map(({ words }) => words)),
    asPointers: total(returned.map((task) => pointerTo(task.id))),
    throughMemory: tokensOfBytes(await readBelow(reads, id)),
  };
}

/** What turns below have read from the shared memory, in bytes: nobody had to pass it on. */
async function readBelow(reads: Reads, id: string): Promise<number> {
  const row = await reads.get<{ bytes: number }>`with recursive tree (id, level) as (
      select t.id, 0 from tasks as t where t.id = ${id}
      union all select t.id, tree.level + 1 from tree join tasks as t on t.parent_id = tree.id where tree.level < ${DEEPEST})
    select cast(coalesce(sum(v.size), 0) as bigint) as bytes from tree cross join runs as u
    cross join pool_reads as r cross join pool_versions as v where u.task_id = tree.id and r.agent = u.agent and r.run = u.id and r.shown = 0
      and v.pool = r.pool and v.key = r.key and v.version = r.version`;
  return row?.bytes ?? 0;
}

/** As a parent is told of it: text as it is, anything else as JSON. */
function wordsOf(result: string): string {
  const value: unknown = JSON.parse(result);
  return typeof value === "string" ? value : result;
}

/** What would stand for it, were it left in the shared memory. */
function pointerTo(task: string): string {
  return JSON.stringify({ pool: `task:${task}`, key: "result", version: 1 });
}

function total(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + tokensOfBytes(Buffer.byteLength(text)), 0);
}

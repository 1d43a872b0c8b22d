import { Buffer } from "node:buffer";
import type { TaskRelay } from "../../contract/tasks.ts";
import { tokensOfBytes } from "../../kernel/token-estimate.ts";
import type { Reads } from "../../store/engine.ts";

/** Deeper than any chain that can be opened. */
const DEEPEST = 100;

/** The relay meter of a task that has delegated: docs/relay.md says what is counted. Null: it has delegated nothing. */
export async function relayBelow(reads: Reads, id: string): Promise<TaskRelay | null> {
  const children = await reads.all<{ id: string; result: string | null }>`select id, result from tasks
    where parent_id = ${id} and kind in ('child', 'delegate', 'remote')`;
  if (children.length === 0) return null;
  // A value that nobody below has written is theirs too: it was there so that nobody had to pass it on.
  const row = await reads.get<{ bytes: number }>`with recursive below (id, level) as (
      select t.id, 1 from tasks as t where t.parent_id = ${id}
      union all select t.id, b.level + 1 from below as b join tasks as t on t.parent_id = b.id where b.level < ${DEEPEST})
    select cast(coalesce(sum(v.size), 0) as bigint) as bytes from below as b join runs as u on u.task_id = b.id
    join pool_reads as r on r.agent = u.agent and r.run = u.id and r.shown = 0
    join pool_versions as v on v.pool = r.pool and v.key = r.key and v.version = r.version`;
  return {
    returned: total(children.map(({ result }) => (result === null ? "" : wordsOf(result)))),
    asPointers: total(children.map(({ id: child, result }) => (result === null ? "" : pointerTo(child)))),
    throughMemory: tokensOfBytes(row?.bytes ?? 0),
  };
}

/** As a parent is told of it: text as it is, anything else as JSON. */
function wordsOf(result: string): string {
  const value: unknown = JSON.parse(result);
  return typeof value === "string" ? value : result;
}

function pointerTo(task: string): string {
  return `{"pool":"task:${task}","key":"result","version":1}`;
}

function total(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + tokensOfBytes(Buffer.byteLength(text)), 0);
}

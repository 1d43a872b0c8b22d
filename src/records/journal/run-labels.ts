import { LABELS, type Label } from "../../kernel/label.ts";
import type { Reads } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";

/** What runs have carried: from what they were told at their beginning, from calls, from what came in between. Those that carried nothing are not in it. */
export async function labelsByRun(reads: Reads, runIds: readonly string[]): Promise<Map<string, Label[]>> {
  if (runIds.length === 0) return new Map();
  const rows = await reads.all<{ run_id: string; labels: string }>`
    select run_id, labels from tool_calls where run_id in ${list(runIds)} and labels <> ''
    union select run_id, labels from run_steps where run_id in ${list(runIds)} and labels <> ''
    union select run_id, labels from run_contexts where run_id in ${list(runIds)} and labels <> ''`;
  const byRun = Map.groupBy(rows, (row) => row.run_id);
  return new Map([...byRun].map(([run, carried]) => [run, inOrder(carried.flatMap(({ labels }) => labels.split(" ")))]));
}

/** The same of all of them together. */
export async function labelsOfRuns(reads: Reads, runIds: readonly string[]): Promise<Label[]> {
  return inOrder([...(await labelsByRun(reads, runIds)).values()].flat());
}

function inOrder(labels: readonly string[]): Label[] {
  const carried = new Set(labels);
  return LABELS.filter((label) => carried.has(label));
}

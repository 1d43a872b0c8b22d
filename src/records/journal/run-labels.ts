import { LABELS, type Label } from "../../kernel/label.ts";
import type { Reads } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";

/** What runs have carried, all of them together: from what they were told at their beginning, from calls, from what came in between. */
export async function labelsOfRuns(reads: Reads, runIds: readonly string[]): Promise<Label[]> {
  if (runIds.length === 0) return [];
  const rows = await reads.all<{ labels: string }>`select labels from tool_calls where run_id in ${list(runIds)} and labels <> ''
    union select labels from run_steps where run_id in ${list(runIds)} and labels <> ''
    union select labels from run_contexts where run_id in ${list(runIds)} and labels <> ''`;
  const carried = new Set(rows.flatMap((row) => row.labels.split(" ")));
  return LABELS.filter((label) => carried.has(label));
}

import type { Label } from "../../kernel/label.ts";
import { labelsOfRuns } from "../../records/journal/run-labels.ts";
import type { StoredTask } from "../../records/tasks/task-rows.ts";
import { runsOfTask } from "../../records/tasks/task-tree.ts";
import type { Reads } from "../../store/engine.ts";

/** What whoever takes over its result has seen with it: all that its turns have seen, and of a workflow those of its steps. */
export async function labelsOfTask(reads: Reads, task: Pick<StoredTask, "id" | "kind" | "spec">): Promise<Label[]> {
  const seen = await labelsOfRuns(reads, await runsOfTask(reads, task));
  // What comes from elsewhere is somebody else's word.
  const elsewhere: Label[] = task.kind === "remote" ? ["external"] : [];
  return [...new Set([...elsewhere, ...(task.spec.labels ?? []), ...seen])];
}

import { labelsOfTask } from "../../../acts/tasks/task-labels.ts";
import type { Label } from "../../../kernel/label.ts";
import { readTask, type StoredTask } from "../../../records/tasks/task-rows.ts";
import type { Reads } from "../../../store/engine.ts";
import type { ToolOutcome } from "../tool.ts";

/** What came of tasks, with what they have seen; null: not all are over. `several`: the model asked for more than one. */
export async function gather(reads: Reads, ids: readonly string[], several: boolean): Promise<ToolOutcome | null> {
  const labels = new Set<Label>();
  const ended: StoredTask[] = [];
  for (const id of ids) {
    const task = await readTask(reads, id);
    if (task?.endedAt === null) return null;
    if (!task) continue;
    for (const label of await labelsOfTask(reads, task)) labels.add(label);
    ended.push(task);
  }
  const shown = ended.map(endOf);
  return {
    output: several ? { tasks: shown } : shown[0],
    failed: ended.every(({ status }) => status !== "completed"),
    labels: [...labels],
    told: { tasks: ended.map(({ id, status }) => ({ id, status })) },
  };
}

export function endOf({ id, kind, agent, status, result, error }: StoredTask): Readonly<Record<string, unknown>> {
  const done = kind === "workflow" ? { outputs: result } : { result };
  return {
    task: id,
    ...(kind === "delegate" || kind === "remote" ? { agent } : {}),
    status,
    ...(status === "completed" ? done : { error }),
  };
}

import { labelsOfTask } from "../../../acts/tasks/task-labels.ts";
import type { Label } from "../../../kernel/label.ts";
import { readTask, type StoredTask } from "../../../records/tasks/task-rows.ts";
import type { Reads } from "../../../store/engine.ts";
import type { ToolOutcome } from "../tool.ts";

const NOT_KEPT = { code: "request.not_found", message: "what came of it is no longer kept" };

/** What came of tasks, with what they have seen; null: not all are over. `several`: the model asked for more than one. */
export async function gather(reads: Reads, ids: readonly string[], several: boolean): Promise<ToolOutcome | null> {
  const labels = new Set<Label>();
  const ended: Pick<StoredTask, "id" | "kind" | "agent" | "status" | "result" | "error">[] = [];
  for (const id of ids) {
    const task = await readTask(reads, id);
    if (task?.endedAt === null) return null;
    // A turn may be held for longer than the tasks of others are kept.
    if (!task) ended.push({ id, kind: "child", agent: null, status: "unknown", result: null, error: NOT_KEPT });
    else ended.push(task);
    if (task) for (const label of await labelsOfTask(reads, task)) labels.add(label);
  }
  const shown = ended.map(endOf);
  return {
    output: several ? { tasks: shown } : shown[0],
    failed: ended.every(({ status }) => status !== "completed"),
    labels: [...labels],
    told: { tasks: ended.map(({ id, status }) => ({ id, status })) },
  };
}

export function endOf({
  id,
  kind,
  agent,
  status,
  result,
  error,
}: Pick<StoredTask, "id" | "kind" | "agent" | "status" | "result" | "error">): Readonly<Record<string, unknown>> {
  const done = kind === "workflow" ? { outputs: result } : { result };
  return {
    task: id,
    ...(kind === "delegate" || kind === "remote" ? { agent } : {}),
    status,
    ...(status === "completed" ? done : { error }),
  };
}

import type { TaskKind } from "../../contract/tasks.ts";
import type { Reads } from "../../store/engine.ts";

export interface TaskOfRun {
  readonly id: string;
  readonly kind: TaskKind;
  readonly workflow: string | null;
  readonly step: string | null;
}

/** The task that a run is a turn of; null: it was asked for in a conversation. */
export async function taskOfRun(reads: Reads, run: string): Promise<TaskOfRun | null> {
  const task = await reads.get<TaskOfRun>`select tasks.id as id, tasks.kind as kind, tasks.workflow_id as workflow, tasks.step as step
    from runs join tasks on tasks.id = runs.task_id where runs.id = ${run}`;
  return task ?? null;
}

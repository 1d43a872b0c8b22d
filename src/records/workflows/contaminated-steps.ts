import type { Reads } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";

/** A step of a run of a workflow, by the turn that did it. */
export interface StepOfTurn {
  readonly run: string;
  readonly workflow: string;
  readonly step: string;
}

/**
 * Which steps of which workflows these turns were, also where a later run has taken them over: what is to run again when what they read or
 * wrote was withdrawn. What is no longer kept cannot be run again.
 */
export async function stepsOfTurns(reads: Reads, runs: readonly string[]): Promise<StepOfTurn[]> {
  if (runs.length === 0) return [];
  const own = await reads.all<StepOfTurn>`select r.id as run, t.workflow_id as workflow, t.step as step
    from runs as r join tasks as t on t.id = r.task_id join workflow_runs as w on w.id = t.workflow_id
    where r.id in ${list(runs)} and t.kind = 'step' order by r.id`;
  const reused = await reads.all<StepOfTurn>`select run_id as run, workflow_id as workflow, step from workflow_steps
    where reused = 1 and run_id in ${list(runs)} order by run_id, workflow_id`;
  return [...own, ...reused];
}

import type { Replaced } from "../../records/pools/step-memory.ts";
import type { StoredTask } from "../../records/tasks/task-rows.ts";
import type { Reads } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";

/**
 * Which version a write of a step replaces where it names none: what the step itself has written in an earlier attempt, also in the run that this
 * one goes back to; else what it has read. Undefined: nothing is said, and the rules of the key decide.
 */
export async function versionsToReplace(
  reads: Reads,
  task: Pick<StoredTask, "id" | "step" | "workflow">,
  replaced: ReadonlyMap<string, Replaced>,
): Promise<ReadonlyMap<string, number>> {
  const runs = [...replaced.values()].flatMap(({ run }) => run ?? []);
  const own = runs.length === 0 ? new Set<string>() : await runsOfStep(reads, task, runs);
  const versions = new Map<string, number>();
  for (const [key, { version, run, read }] of replaced) {
    if (run !== null && own.has(run)) versions.set(key, version);
    else if (read !== null && read > 0) versions.set(key, read);
  }
  return versions;
}

async function runsOfStep(
  reads: Reads,
  { id, step, workflow }: Pick<StoredTask, "id" | "step" | "workflow">,
  runs: readonly string[],
): Promise<Set<string>> {
  const rows = await reads.all<{ id: string }>`select r.id from runs as r join tasks as t on t.id = r.task_id
    where r.id in ${list(runs)} and (t.id = ${id} or (t.step = ${step} and t.workflow_id in (
      select ${workflow} union select rerun_of from workflow_runs where id = ${workflow})))`;
  return new Set(rows.map((row) => row.id));
}

import { isStepOver, type StepState } from "../../contract/workflows.ts";
import { candidatesAfter } from "../../deciders/planning/plan.ts";
import type { StoredTask } from "../../records/tasks/task-rows.ts";
import {
  endStep,
  type ItemsOfStep,
  readSteps,
  repeatStep,
  type StaleNote,
  type StepEnd,
  type StoredStep,
} from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskRunEnd } from "../tasks/close-task.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { advanceIn, endStepIn } from "./advance.ts";
import { settleStandingIn } from "./end-workflow.ts";
import { count, type GoingWorkflow, holdGoing, tell } from "./going-workflow.ts";
import { moved, startItemsIn } from "./start-items.ts";
import { definitionOf, startAgainIn } from "./start-step.ts";

/** How the turn of a step has ended, beside what is known of every task. */
export type StepRunEnd = TaskRunEnd & {
  /** Its run, where this transaction holds it already. */
  readonly going?: GoingWorkflow | undefined;
  /** Trying again cannot help. */
  readonly final?: boolean;
  /** What it had read was changed: it is done again (`rerun`), or was let pass (`warn`). */
  readonly stale?: { readonly reads: readonly StaleNote[]; readonly again: boolean } | undefined;
};

/** What a retry waits at most. */
const LONGEST_DELAY_MS = 3_600_000;

/**
 * A turn of a step has ended, and in the same transaction everything follows that follows from it: the step is tried again, or it is over, and
 * whatever may start by that has started. `again`: the task goes on with a new turn; `over`: it has ended.
 */
export async function settleStepIn(parts: TaskParts, tx: Tx, task: StoredTask, end: StepRunEnd): Promise<"again" | "over"> {
  const going = end.going ?? (await holdGoing(parts, tx, task.workflow as string, task.agent ?? task.from, null));
  if (!going) return "over";
  going.causedBy = end.causedBy;
  const { row, parent, states } = await readAround(tx, going, task.step as string);
  // Somebody else had the last word: the run was cancelled, or the step was begun anew.
  if (!row || row.task !== task.id || isStepOver(row.state)) return "over";
  if (await isTriedAgain(parts, tx, going, row, task, end)) {
    await settleStandingIn(parts, tx, going);
    return "again";
  }
  const state = end.status === "completed" ? "completed" : end.status === "cancelled" ? "cancelled" : "failed";
  const over: StepEnd = { state, error: end.error, stale: end.stale?.reads };
  const told = { task: task.id, run: task.run, attempts: row.attempts };
  if (row.itemIndex === null) {
    await endStepIn(parts, tx, going, row.step, { ...over, told });
    count(going, { active: -1 });
    // With a step that is lost, all that rests on it is over already, and what was read before of their states holds no more.
    if (state === "completed")
      await advanceIn(parts, tx, going, candidatesAfter(going.known.compiled, row.step), { states: states.set(row.step, state) });
  } else {
    await endItemIn(parts, tx, going, row, over, told, parent?.items ?? null);
  }
  await settleStandingIn(parts, tx, going);
  return "over";
}

interface Around {
  readonly row: StoredStep | undefined;
  /** Of an item, the step that it is an item of. */
  readonly parent: StoredStep | undefined;
  readonly states: Map<string, StepState>;
}

/** The step, and all whose states are asked for when it is over, in one go. */
async function readAround(tx: Tx, { known: { compiled, id } }: GoingWorkflow, step: string): Promise<Around> {
  const isWhole = compiled.steps.has(step);
  const next = isWhole ? candidatesAfter(compiled, step) : [step.replace(/\[\d+\]$/, "")];
  const wanted = new Set([step, ...next, ...(isWhole ? next.flatMap((one) => compiled.steps.get(one)?.looksAt ?? []) : [])]);
  const rows = await readSteps(tx, id, [...wanted]);
  return {
    row: rows.find((one) => one.step === step),
    parent: isWhole ? undefined : rows.find((one) => one.step === next[0]),
    states: new Map(rows.map((one) => [one.step, one.state])),
  };
}

async function isTriedAgain(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  row: StoredStep,
  task: StoredTask,
  end: StepRunEnd,
): Promise<boolean> {
  const { retry } = definitionOf(going, row);
  const isStale = end.stale?.again === true;
  // Those that were done again because something had changed are nobody's failure, and do not count.
  const failures = row.attempts - row.staleReruns;
  const isFailure = end.status === "failed" && !end.final && failures < (retry?.attempts ?? 1);
  if (!isStale && !isFailure) return false;
  const delayMs = isStale || !retry ? 0 : delayOf(retry, failures);
  const said = isStale
    ? await tell(parts, tx, going, "step.stale", { step: row.step, task: task.id, run: task.run, rule: "rerun", stale: end.stale?.reads })
    : await tell(parts, tx, going, "step.retried", { step: row.step, task: task.id, run: task.run, error: end.error, delayMs });
  const run = await startAgainIn(parts, tx, going, row, task, said, delayMs);
  await repeatStep(tx, going.known.id, row.step, { run, error: end.error, stale: isStale });
  return true;
}

/** `failures`: so many attempts have failed. */
function delayOf({ backoff, delay }: { readonly backoff: string; readonly delay: number }, failures: number): number {
  if (backoff === "none") return 0;
  return Math.min(backoff === "fixed" ? delay : delay * 2 ** (failures - 1), LONGEST_DELAY_MS);
}

async function endItemIn(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  row: StoredStep,
  end: StepEnd,
  told: object,
  items: ItemsOfStep | null,
): Promise<void> {
  const { known } = going;
  await endStep(tx, known.id, row.step, end);
  await tell(parts, tx, going, `step.${end.state}`, { step: row.step, ...(end.error ? { error: end.error } : {}), ...told });
  if (!items) return;
  const to = end.state === "skipped" ? "completed" : end.state;
  const outcome = await startItemsIn(parts, tx, going, row.ofStep, moved(items, "active", to));
  if (outcome === null) return;
  await endStepIn(parts, tx, going, row.ofStep, outcome);
  count(going, { active: -1 });
  const states = new Map<string, StepState>([[row.ofStep, outcome.state]]);
  await advanceIn(parts, tx, going, candidatesAfter(known.compiled, row.ofStep), { states });
}

import type { LedgerEvent } from "../../src/contract/events.ts";
import type { WorkflowRun } from "../../src/contract/workflows.ts";
import type { Witness } from "./turns-witness.ts";

/** Branches of each workflow. */
export const FAN_OUT = 10;
const ENDS = ["step.completed", "step.failed", "step.skipped", "step.cancelled"];
const TASK_ENDS = ["task.completed", "task.failed", "task.cancelled", "task.lost"];
const RUN_ENDS = ["workflow.completed", "workflow.failed", "workflow.cancelled"];

/** Holds what the runs and the ledger say against what was seen outside. */
export function checkWorkflows(
  runs: ReadonlyMap<string, WorkflowRun>,
  witness: Pick<Witness, "done">,
  events: readonly LedgerEvent[],
  fanOut = FAN_OUT,
): { readonly problems: string[]; readonly counts: Record<string, number> } {
  const problems: string[] = [];
  const counts = { completed: 0, steps: 0, "fired once": 0, "outcome unknown": 0, "put again": 0 };
  for (const [what, times] of witness.done) {
    if (what.startsWith("put ")) counts["put again"] += times - 1;
    if (!what.startsWith("fire ")) continue;
    if (times > 1) problems.push(`${what} was done ${times} times: an unsafe call was repeated`);
    else counts["fired once"]++;
  }
  const fired = [...witness.done.keys()].filter((what) => what.startsWith("fire "));
  for (const [step, things] of Map.groupBy(fired, (what) => what.slice(what.indexOf(" for "))))
    if (things.length > 1) problems.push(`fire${step} was done ${things.length} times: a step's answer was asked for again`);
  for (const [name, run] of runs) problems.push(...problemsOf(name, run, fanOut, counts));
  problems.push(...twice(events, ENDS, ({ subject, data }) => `${subject.join(" ")} ${(data as { step?: string } | null)?.step ?? ""}`));
  problems.push(...twice(events, TASK_ENDS, ({ subject }) => subject.join(" ")));
  problems.push(...twice(events, RUN_ENDS, ({ subject }) => subject.join(" ")));
  return { problems, counts };
}

function problemsOf(name: string, run: WorkflowRun, fanOut: number, counts: Record<string, number>): string[] {
  if (run.status !== "completed") {
    const failed = run.steps.find(({ error }) => error);
    return [`the workflow ${name} is ${run.status}: ${JSON.stringify(run.error ?? failed)}`];
  }
  counts.completed = (counts.completed ?? 0) + 1;
  const problems: string[] = [];
  const items = run.steps.filter(({ id }) => id.startsWith("work["));
  if (items.length !== fanOut) problems.push(`${name} has ${items.length} items`);
  for (const step of run.steps) {
    counts.steps = (counts.steps ?? 0) + 1;
    if (step.status !== "completed") problems.push(`${name}: the step ${step.id} is ${step.status}`);
  }
  const said = run.outputs.results as readonly string[];
  for (let item = 0; item < fanOut; item++) {
    const found = said.filter((words) => words.startsWith(`item ${item} done`));
    if (found.length !== 1) problems.push(`${name}: the result of item ${item} is there ${found.length} times`);
    counts["outcome unknown"] = (counts["outcome unknown"] ?? 0) + Number(/(\d+) unknown/.exec(found[0] ?? "")?.[1] ?? 0);
  }
  if (said.length !== fanOut) problems.push(`${name} has ${said.length} results`);
  if (!String(run.outputs.summary).startsWith("gather done")) problems.push(`${name}: ${JSON.stringify(run.outputs.summary)}`);
  return problems;
}

/** What may happen once, and is told more often. */
function twice(events: readonly LedgerEvent[], types: readonly string[], nameOf: (event: LedgerEvent) => string): string[] {
  const ends = Map.groupBy(
    events.filter(({ type }) => types.includes(type)),
    nameOf,
  );
  return [...ends]
    .filter(([, each]) => each.length > 1)
    .map(([name, each]) => `${name} ended ${each.length} times: ${each.map(({ type }) => type)}`);
}

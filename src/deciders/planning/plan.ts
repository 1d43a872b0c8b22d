import { isStepOver, MAX_ITEMS, type StepState } from "../../contract/workflows.ts";
import { Failure } from "../../kernel/failure.ts";
import type { CompiledStep, CompiledWorkflow } from "./compile.ts";
import type { ConditionValues } from "./condition.ts";

/**
 * What may start, and how the states of steps move:
 *
 *   waiting ─ a need failed or was cancelled ─────────────────→ cancelled
 *   waiting ─ every need is completed or skipped, and then
 *             `when` cannot be evaluated, or there is no list ─→ failed
 *             `when` is false ────────────────────────────────→ skipped
 *             `review: human` ────────────────────────────────→ review
 *             foreach without items ──────────────────────────→ completed
 *             foreach ────────────────────────────────────────→ running, and each item a waiting row of its own
 *             else ───────────────────────────────────────────→ ready
 *   review  ─ approved ─→ as above, behind the review; `when` is not asked again
 *   review  ─ rejected ─→ failed (the engine's)
 *   ready   ─ its turn begins ─→ running ─→ completed, failed, or ready again (a retry; the engine's)
 *   whatever is not over ─ cancel ─→ cancelled (the engine's)
 *
 * Items: at most `max_parallel` of them (a hundred, where there is none) are ready or running at a time, lower indexes first. One that fails
 * stops no other; when all are over, the step is failed if an item failed, cancelled if one was cancelled, else completed. So the outcome never
 * depends on who is done first.
 *
 * Only `waiting` and `review` are ever left by the planner, which is why no step starts twice. What is over here (skipped, cancelled, failed,
 * completed) is settled like any other step: ask `candidatesAfter` for it too.
 */
export interface Facts {
  /** Of the candidates, and of what they look at (`CompiledStep.looksAt`). A step that is left out is waiting. */
  readonly states: ReadonlyMap<string, StepState>;
  /** What `when` is asked about, and where the list of a `foreach` is found (`outputs`). The keys that are looked at: `keysWanted`. */
  readonly values: ConditionValues;
  /** Steps that a person has let through their review. */
  readonly approved?: ReadonlySet<string>;
  /** Nothing new starts. */
  readonly paused?: boolean;
}

interface Planned {
  readonly step: string;
  /** For people. */
  readonly because: string;
}
export type PlannedStep =
  | (Planned & { readonly action: "start" | "review" | "skip" | "cancel" | "wait" | "complete" })
  | (Planned & { readonly action: "fail"; readonly failure: StepFailure })
  /** One instance per item; the first `start` of them begin now. */
  | (Planned & { readonly action: "expand"; readonly items: readonly unknown[]; readonly start: number });

export interface StepFailure {
  readonly code: "step.bad_condition" | "step.bad_list";
  readonly message: string;
}

/** How many items of one foreach are in which state. */
export interface ItemCounts {
  readonly waiting: number;
  /** Ready, running, or in review. */
  readonly active: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

/**
 * Of a `foreach` that says nothing of it. All that may begin begins in the transaction that ends the step before it, which has only so much
 * time: several lists of a thousand were more than it could take.
 */
const AT_ONCE = 100;

export function plan(workflow: CompiledWorkflow, facts: Facts, candidates: Iterable<string>): PlannedStep[] {
  return [...new Set(candidates)].map((id) => planStep(workflow, stepOf(workflow, id), facts));
}

/** Keys whose values `plan` will look at for these candidates: only of those that could start. Read them first, and hand them in as `outputs`. */
export function keysWanted(workflow: CompiledWorkflow, facts: Pick<Facts, "states" | "approved">, candidates: Iterable<string>): string[] {
  const keys = new Set<string>();
  for (const id of new Set(candidates)) {
    const compiled = stepOf(workflow, id);
    if (!mayLeave(compiled, facts) || blockOf(compiled, facts) !== null) continue;
    const named = stateOf(facts, id) === "review" ? [] : (compiled.condition?.outputs ?? []);
    for (const key of named === "all" ? workflow.writers.keys() : named) keys.add(key);
    if (compiled.step.foreach !== undefined) keys.add(compiled.step.foreach);
  }
  return [...keys];
}

/** An item is over, or nobody has looked yet: how many more may start, and what has become of the step, null while items are open. */
export function planItems(
  { step }: CompiledStep,
  counts: ItemCounts,
): { readonly start: number; readonly outcome: "completed" | "failed" | "cancelled" | null } {
  const open = counts.waiting + counts.active;
  if (open === 0) return { start: 0, outcome: counts.failed > 0 ? "failed" : counts.cancelled > 0 ? "cancelled" : "completed" };
  return { start: Math.max(0, Math.min(counts.waiting, (step.max_parallel ?? AT_ONCE) - counts.active)), outcome: null };
}

export function countItems(states: Iterable<StepState>): ItemCounts {
  const counts = { waiting: 0, active: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const state of states) {
    if (state === "ready" || state === "running" || state === "review") counts.active++;
    else if (state === "skipped") counts.completed++;
    else counts[state]++;
  }
  return counts;
}

/** Who to look at when these steps are over, in order. */
export function candidatesAfter(workflow: CompiledWorkflow, settled: string | Iterable<string>): string[] {
  const ids = typeof settled === "string" ? [settled] : settled;
  const next = new Set<string>();
  for (const id of ids) for (const dependent of stepOf(workflow, id).dependents) next.add(dependent);
  return sorted(workflow, next);
}

/** Everything that rests on these steps, however far away, in order; without the steps themselves. */
export function restsOn(workflow: CompiledWorkflow, ids: Iterable<string>): string[] {
  const from = [...ids];
  const found = new Set<string>();
  const open = [...from];
  for (let id = open.pop(); id !== undefined; id = open.pop())
    for (const dependent of stepOf(workflow, id).dependents)
      if (!found.has(dependent)) {
        found.add(dependent);
        open.push(dependent);
      }
  return sorted(workflow, found);
}

function planStep(workflow: CompiledWorkflow, compiled: CompiledStep, facts: Facts): PlannedStep {
  const { id } = compiled.step;
  const state = stateOf(facts, id);
  if (!mayLeave(compiled, facts))
    return { step: id, action: "wait", because: state === "review" ? "a person must let it through" : `it is ${state} already` };
  const blocked = blockOf(compiled, facts);
  if (blocked !== null) return { step: id, ...blocked };
  if (facts.paused) return { step: id, action: "wait", because: "the run is paused" };
  if (state === "waiting") {
    const refused = conditionally(compiled, facts.values);
    if (refused !== null) return { step: id, ...refused };
    if (compiled.step.review === "human" && !facts.approved?.has(id))
      return { step: id, action: "review", because: "`review: human`: a person must let it through" };
  }
  if (compiled.step.foreach === undefined) return { step: id, action: "start", because: readiness(compiled) };
  return { step: id, ...expansion(workflow, compiled, compiled.step.foreach, facts) };
}

type Left<Step> = Step extends unknown ? Omit<Step, "step"> : never;

function mayLeave({ step }: CompiledStep, facts: Pick<Facts, "states" | "approved">): boolean {
  const state = stateOf(facts, step.id);
  return state === "waiting" || (state === "review" && facts.approved?.has(step.id) === true);
}

/** Why it cannot go on as far as its needs are concerned; null: they are all met. A need that failed counts, whatever else is open. */
function blockOf({ needs }: CompiledStep, facts: Pick<Facts, "states">): { action: "cancel" | "wait"; because: string } | null {
  let open: string | undefined;
  for (const need of needs) {
    const state = stateOf(facts, need);
    if (state === "failed" || state === "cancelled") return { action: "cancel", because: `${need}, which it needs, is ${state}` };
    if (!isStepOver(state)) open ??= need;
  }
  return open === undefined ? null : { action: "wait", because: `${open}, which it needs, is ${stateOf(facts, open)}` };
}

function conditionally({ condition, step }: CompiledStep, values: ConditionValues): Left<PlannedStep> | null {
  if (condition === null) return null;
  const asked = condition.evaluate(values);
  if ("problem" in asked) {
    const message = `\`when\` of ${step.id} cannot be evaluated: ${asked.problem}`;
    return { action: "fail", because: message, failure: { code: "step.bad_condition", message } };
  }
  return asked.holds ? null : { action: "skip", because: "`when` is false" };
}

function expansion(workflow: CompiledWorkflow, compiled: CompiledStep, key: string, facts: Facts): Left<PlannedStep> {
  const list = facts.values.outputs[key] ?? null;
  if (list === null) {
    const writers = workflow.writers.get(key) ?? [];
    if (writers.length > 0 && writers.every((writer) => stateOf(facts, writer) === "skipped"))
      return { action: "complete", because: `nobody wrote ${key}: ${writers.join(", ")} was skipped` };
    return badList(`${key} holds nothing`);
  }
  if (!Array.isArray(list)) return badList(`${key} holds ${typeof list === "object" ? "a map" : `a ${typeof list}`}, not a list`);
  if (list.length > MAX_ITEMS) return badList(`the list in ${key} has ${list.length} items; at most ${MAX_ITEMS} are possible`);
  if (list.length === 0) return { action: "complete", because: `the list in ${key} is empty` };
  const { start } = planItems(compiled, { waiting: list.length, active: 0, completed: 0, failed: 0, cancelled: 0 });
  return { action: "expand", because: `${key} holds ${list.length} item${list.length === 1 ? "" : "s"}`, items: list, start };
}

function badList(why: string): Left<PlannedStep> {
  const message = `foreach: ${why}`;
  return { action: "fail", because: message, failure: { code: "step.bad_list", message } };
}

function readiness({ needs }: CompiledStep): string {
  return needs.length === 0 ? "it needs nobody" : `${needs.join(", ")} ${needs.length === 1 ? "is" : "are"} done`;
}

function stateOf({ states }: Pick<Facts, "states">, id: string): StepState {
  return states.get(id) ?? "waiting";
}

function stepOf(workflow: CompiledWorkflow, id: string): CompiledStep {
  const compiled = workflow.steps.get(id);
  if (!compiled) throw new Failure("internal.bug", `the workflow ${workflow.definition.name} has no step ${id}`);
  return compiled;
}

function sorted(workflow: CompiledWorkflow, ids: Iterable<string>): string[] {
  return [...ids].toSorted((a, b) => stepOf(workflow, a).order - stepOf(workflow, b).order);
}

import fc from "fast-check";
import { isStepOver, type StepState, type Workflow, workflow } from "../src/contract/workflows.ts";
import { type CompiledStep, compileWorkflow } from "../src/deciders/planning/compile.ts";
import type { Conditions } from "../src/deciders/planning/condition.ts";
import { candidatesAfter, countItems, type Facts, keysWanted, type PlannedStep, plan, planItems } from "../src/deciders/planning/plan.ts";

type End = "completed" | "failed";

/** One step of a run that is played: how it is written, and what would become of it. */
export interface PlayedStep {
  readonly id: string;
  readonly needs: readonly string[];
  /** Undefined: no `when`. Null: it names an input that is not there. */
  readonly when: boolean | null | undefined;
  /** Whether a person lets it through; undefined: nobody is asked. */
  readonly review: boolean | undefined;
  readonly end: End;
  /** A foreach: how each item ends; null: its key holds no list. */
  readonly items: readonly End[] | null | undefined;
  readonly maxParallel: number | undefined;
}

const end = fc.constantFrom<End>("completed", "completed", "completed", "failed");
const anyStep = fc.record({
  needs: fc.array(fc.nat(), { maxLength: 4 }),
  when: fc.option(fc.constantFrom(true, true, false, null), { nil: undefined, freq: 2 }),
  review: fc.option(fc.constantFrom(true, true, false), { nil: undefined, freq: 1 }),
  end,
  items: fc.option(fc.oneof({ weight: 6, arbitrary: fc.array(end, { maxLength: 6 }) }, { weight: 1, arbitrary: fc.constant(null) }), {
    nil: undefined,
    freq: 2,
  }),
  maxParallel: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
});

/** Steps without circles, in any order of the file. */
export const anySteps: fc.Arbitrary<readonly PlayedStep[]> = fc
  .array(anyStep, { minLength: 1, maxLength: 12 })
  .map((steps) =>
    steps.map((step, index) => ({
      ...step,
      id: `s${index}`,
      needs: index === 0 ? [] : [...new Set(step.needs.map((need) => `s${need % index}`))],
    })),
  )
  .chain((steps) => fc.shuffledSubarray(steps, { minLength: steps.length, maxLength: steps.length }));

/** What must come out, by the words of the contract: each step from the ends of those it needs, whatever the order in which they end. */
export function oracle(steps: readonly PlayedStep[]): ReadonlyMap<string, StepState> {
  const ends = new Map<string, StepState>();
  const endOf = (step: PlayedStep): StepState => {
    const needs = step.needs.map((need) => known(need));
    if (needs.some((state) => state === "failed" || state === "cancelled")) return "cancelled";
    if (step.when === null) return "failed";
    if (step.when === false) return "skipped";
    if (step.review === false) return "failed";
    if (step.items === undefined) return step.end;
    return step.items === null || step.items.includes("failed") ? "failed" : "completed";
  };
  const known = (id: string): StepState => {
    const found = ends.get(id) ?? endOf(steps.find((step) => step.id === id) as PlayedStep);
    ends.set(id, found);
    return found;
  };
  return new Map(steps.map(({ id }) => [id, known(id)]));
}

function written(steps: readonly PlayedStep[]): Workflow {
  return workflow.parse({
    name: "played",
    pool: "house",
    steps: steps.map(({ id, needs, when, review, items, maxParallel }) => ({
      id,
      goal: "play",
      needs,
      ...(when === undefined ? {} : { when: `input.${id}` }),
      ...(review === undefined ? {} : { review: "human" }),
      ...(items === undefined ? {} : { foreach: `list_${id}`, ...(maxParallel === undefined ? {} : { max_parallel: maxParallel }) }),
    })),
  });
}

export interface Played {
  readonly ends: ReadonlyMap<string, StepState>;
  /** Every start, in order: `s3`, `s4[1]`. */
  readonly starts: readonly string[];
}

/** Plays a run to its end as an engine would: whatever ends is settled, and only those that may be touched by it are looked at. */
export function play(steps: readonly PlayedStep[], conditions: Conditions, choose: (count: number) => number): Played {
  const compiled = compileWorkflow(written(steps), conditions);
  const played = new Map(steps.map((step) => [step.id, step]));
  const states = new Map<string, StepState>();
  const items = new Map<string, StepState[]>();
  const starts: string[] = [];
  const open: string[] = [];
  const approved = new Set<string>();
  let isPaused = false;

  const stateOf = (id: string): StepState => states.get(id) ?? "waiting";
  const move = (id: string, to: StepState): void => {
    if (isStepOver(stateOf(id))) throw new Error(`${id} is ${stateOf(id)} and was made ${to}`);
    states.set(id, to);
  };
  const start = (id: string, of: CompiledStep): void => {
    if (starts.includes(id)) throw new Error(`${id} has started twice`);
    if (isPaused) throw new Error(`${id} has started in a paused run`);
    for (const need of of.step.needs)
      if (!["completed", "skipped"].includes(stateOf(need))) throw new Error(`${id} has started while ${need} is ${stateOf(need)}`);
    starts.push(id);
    open.push(id);
  };
  const startItems = (id: string, count: number): void => {
    const of = items.get(id) as StepState[];
    for (let left = count; left > 0; left--) {
      const index = of.indexOf("waiting");
      if (index < 0) throw new Error(`${id} has fewer items than were to start`);
      of[index] = "running";
      start(`${id}[${index}]`, compiled.steps.get(id) as CompiledStep);
    }
    const active = of.filter((state) => state === "running").length;
    if (active > (played.get(id)?.maxParallel ?? Number.POSITIVE_INFINITY)) throw new Error(`${active} items of ${id} run at once`);
  };
  /** Only what the planner says it looks at is handed to it. */
  const factsFor = (candidates: readonly string[]): Facts => {
    const seen = new Set(candidates.flatMap((id) => [id, ...(compiled.steps.get(id) as CompiledStep).looksAt]));
    const known = new Map([...seen].map((id) => [id, stateOf(id)]));
    const keys = keysWanted(compiled, { states: known, approved }, candidates);
    const outputs = keys.map((key) => [key, listOf(played.get(key.replace("list_", "")) as PlayedStep)]);
    const input = steps.flatMap(({ id, when }) => (typeof when === "boolean" ? [[id, when]] : []));
    return {
      states: known,
      values: { input: Object.fromEntries(input), outputs: Object.fromEntries(outputs), steps: {} },
      approved,
      paused: isPaused,
    };
  };
  const apply = (planned: PlannedStep): boolean => {
    const { step: id } = planned;
    switch (planned.action) {
      case "wait":
        return false;
      case "review":
        move(id, "review");
        open.push(id);
        return false;
      case "start":
        move(id, "running");
        start(id, compiled.steps.get(id) as CompiledStep);
        return false;
      case "expand":
        move(id, "running");
        items.set(
          id,
          planned.items.map(() => "waiting" as const),
        );
        startItems(id, planned.start);
        return false;
      case "complete":
        move(id, "completed");
        return true;
      case "skip":
        move(id, "skipped");
        return true;
      case "cancel":
        move(id, "cancelled");
        return true;
      case "fail":
        move(id, "failed");
        return true;
    }
  };
  const look = (candidates: readonly string[]): void => {
    for (let next = candidates; next.length > 0; ) {
      const over = plan(compiled, factsFor(next), next).filter(apply);
      next = candidatesAfter(
        compiled,
        over.map(({ step }) => step),
      );
    }
  };
  const settle = (what: string): void => {
    const [, id = what, index] = /^(.+)\[(\d+)\]$/.exec(what) ?? [];
    const step = played.get(id) as PlayedStep;
    if (index !== undefined) {
      const of = items.get(id) as StepState[];
      of[Number(index)] = (step.items as readonly End[])[Number(index)] as End;
      const { start: more, outcome } = planItems(compiled.steps.get(id) as CompiledStep, countItems(of));
      if (!isPaused) startItems(id, more);
      if (outcome === null) return;
      move(id, outcome);
    } else if (stateOf(id) === "review") {
      if (step.review === true) {
        approved.add(id);
        look([id]);
        return;
      }
      move(id, "failed");
    } else move(id, step.end);
    look(candidatesAfter(compiled, id));
  };
  const resume = (): void => {
    isPaused = false;
    for (const [id, of] of items) startItems(id, planItems(compiled.steps.get(id) as CompiledStep, countItems(of)).start);
    look(compiled.order.filter((id) => stateOf(id) === "waiting" || (stateOf(id) === "review" && approved.has(id))));
  };

  look(compiled.first);
  while (open.length > 0 || isPaused) {
    if (open.length === 0 || choose(8) === 0) {
      if (isPaused) resume();
      else isPaused = true;
      continue;
    }
    const [what] = open.splice(choose(open.length), 1);
    settle(what as string);
  }
  return { ends: new Map(compiled.order.map((id) => [id, stateOf(id)])), starts };
}

function listOf({ items }: PlayedStep): unknown {
  return items === null ? "no list" : items?.map((_, index) => index);
}

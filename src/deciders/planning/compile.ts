import type { Workflow, WorkflowStep } from "../../contract/workflows.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Condition, Conditions } from "./condition.ts";

export interface CompiledStep {
  readonly step: WorkflowStep;
  /** Each once. */
  readonly needs: readonly string[];
  /** Those that need it, in the order of the file. */
  readonly dependents: readonly string[];
  /** Its place in the order: behind all it needs. */
  readonly order: number;
  readonly condition: Condition | null;
  /** Whose states the planner looks at besides its own: what it needs, and who writes the list of its `foreach`. */
  readonly looksAt: readonly string[];
}

/** A definition made ready for planning; it never changes, and one is enough for every run of the same definition. */
export interface CompiledWorkflow {
  readonly definition: Workflow;
  readonly steps: ReadonlyMap<string, CompiledStep>;
  /** Every id, needs first; of those that could change places, the order of the file. */
  readonly order: readonly string[];
  /** Steps that need nobody: where a run begins. */
  readonly first: readonly string[];
  /** By key, who writes it. */
  readonly writers: ReadonlyMap<string, readonly string[]>;
}

/** Whether `compileWorkflow` must be given conditions: workflows without `when` do without CEL. */
export function hasConditions(definition: Workflow): boolean {
  return definition.steps.some(({ when }) => when !== undefined);
}

/** Throws `workflow.invalid` for what `workflowProblems` finds before: an unknown step, a cycle, a `when` that does not parse. */
export function compileWorkflow(definition: Workflow, conditions: Conditions | null = null): CompiledWorkflow {
  const written = new Map(definition.steps.map((step) => [step.id, step]));
  if (written.size !== definition.steps.length) throw invalid("two steps have the same id");
  const dependents = new Map<string, string[]>(definition.steps.map(({ id }) => [id, []]));
  const writers = new Map<string, string[]>();
  for (const step of definition.steps) {
    for (const need of new Set(step.needs)) {
      const others = dependents.get(need);
      if (!others) throw invalid(`the step ${step.id} needs ${need}, which does not exist`);
      others.push(step.id);
    }
    for (const key of new Set(step.writes)) {
      const others = writers.get(key);
      if (others) others.push(step.id);
      else writers.set(key, [step.id]);
    }
  }
  const order = inOrder(definition, dependents);
  if (order.length < definition.steps.length) throw invalid("steps need each other in a circle");
  const steps = new Map<string, CompiledStep>();
  for (const [place, id] of order.entries()) {
    const step = written.get(id) as WorkflowStep;
    const needs = [...new Set(step.needs)];
    steps.set(id, {
      step,
      needs,
      dependents: dependents.get(id) as string[],
      order: place,
      condition: step.when === undefined ? null : conditionOf(step, step.when, conditions),
      looksAt: step.foreach === undefined ? needs : [...new Set([...needs, ...(writers.get(step.foreach) ?? [])])],
    });
  }
  return { definition, steps, order, first: order.filter((id) => steps.get(id)?.needs.length === 0), writers };
}

/** Kahn's algorithm; shorter than the list of steps where some need each other in a circle. */
function inOrder(definition: Workflow, dependents: ReadonlyMap<string, readonly string[]>): string[] {
  const missing = new Map(definition.steps.map(({ id, needs }) => [id, new Set(needs).size]));
  const order = definition.steps.flatMap(({ id }) => (missing.get(id) === 0 ? [id] : []));
  for (const id of order)
    for (const next of dependents.get(id) ?? []) {
      const left = (missing.get(next) as number) - 1;
      missing.set(next, left);
      if (left === 0) order.push(next);
    }
  return order;
}

function conditionOf(step: WorkflowStep, when: string, conditions: Conditions | null): Condition {
  const condition = conditions?.compile(when);
  if (!condition) throw new Failure("internal.bug", `the workflow has a \`when\` (step ${step.id}) and was compiled without conditions`);
  if ("problem" in condition) throw invalid(`\`when\` of the step ${step.id}: ${condition.problem}`);
  return condition;
}

function invalid(message: string): Failure {
  return new Failure("workflow.invalid", message);
}

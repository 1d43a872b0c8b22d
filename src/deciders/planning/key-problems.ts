import type { Workflow } from "../../contract/workflows.ts";
import { errorAt, type Finding, warningAt } from "../../settings/config-problem.ts";
import { only, placesIn, type StepOrder, type StepSet } from "./step-order.ts";
import { few, type Suggest } from "./suggest.ts";

type Path = Finding["path"];
type Writers = ReadonlyMap<string, StepSet>;

/** What is known of the keys of a workflow. */
export interface Keys {
  readonly definition: Workflow;
  readonly order: StepOrder;
  readonly writers: Writers;
  readonly suggest: Suggest;
}

/** Keys that are read before anybody has written them, or written by two at once. */
export function keyProblems(definition: Workflow, order: StepOrder, suggest: Suggest): Finding[] {
  const keys: Keys = { definition, order, writers: writersOf(definition), suggest };
  const { writers } = keys;
  const reads = definition.steps.flatMap((step, index) => [
    ...step.reads.flatMap((key, place) => readProblem(keys, { key, index, path: ["steps", index, "reads", place] })),
    ...(step.foreach === undefined ? [] : readProblem(keys, { key: step.foreach, index, path: ["steps", index, "foreach"] })),
  ]);
  const outputs = definition.outputs.flatMap((key, place) => (writers.has(key) ? [] : [nobodyWrites(keys, key, ["outputs", place])]));
  return [...reads, ...outputs, ...parallelWriters(definition, order, writers)];
}

export function writersOf({ steps }: Workflow): Writers {
  const writers = new Map<string, StepSet>();
  for (const [index, step] of steps.entries()) for (const key of step.writes) writers.set(key, (writers.get(key) ?? 0n) | only(index));
  return writers;
}

/** What is wrong with reading this key there: nobody writes it, or nothing says that they do so before. */
export function readProblem(
  keys: Keys,
  { key, index, path }: { readonly key: string; readonly index: number; readonly path: Path },
): Finding[] {
  const { definition, order, writers } = keys;
  const all = writers.get(key);
  if (all === undefined) return [nobodyWrites(keys, key, path)];
  const besides = order.beside(index, all);
  const isWritten = (all & order.before(index)) !== 0n;
  if (isWritten && besides === 0n) return [];
  const [beside] = placesIn(besides);
  const { id } = stepAt(definition, index);
  if (beside !== undefined) {
    const writer = stepAt(definition, beside).id;
    const message = `${id} reads ${key}, which ${writer} writes, and nothing says who comes first`;
    return [tell(definition, isWritten, path, "workflow.unordered_read", message, `Add ${writer} to the needs of ${id}.`)];
  }
  const later = [...placesIn(all & ~only(index))].map((writer) => stepAt(definition, writer).id);
  const message =
    later.length === 0 ? `${id} reads ${key} before anybody has written it` : `${id} reads ${key} before ${few(later)} writes it`;
  return [tell(definition, false, path, "workflow.read_before_write", message, "Remove it, or let a step before this one write it.")];
}

/** An error, unless the key may hold something already: of a persistent pool, or from a step that surely came before. */
function tell(definition: Workflow, isWritten: boolean, path: Path, code: string, message: string, fix: string): Finding {
  return (isWritten || definition.pool !== undefined ? warningAt : errorAt)(path, code, message, fix);
}

function nobodyWrites({ definition, writers, suggest }: Keys, key: string, path: Path): Finding {
  const { meant, words } = suggest(key, writers.keys());
  const message = `no step writes ${key}${words}`;
  if (definition.pool !== undefined)
    return warningAt(path, "workflow.unwritten_key", `${message}: it must be in the pool ${definition.pool} already`, "Check its name.");
  return errorAt(path, "workflow.unwritten_key", message, meant ? `Write ${meant}.` : `Add ${key} to the writes of a step before.`);
}

function parallelWriters(definition: Workflow, order: StepOrder, writers: Writers): Finding[] {
  return definition.steps.flatMap((step, index) =>
    step.writes.flatMap((key, place) => {
      const earlier = order.beside(index, writers.get(key) as StepSet) & (only(index) - 1n);
      if (earlier === 0n && step.foreach === undefined) return [];
      if ((definition.keys[key]?.policy ?? "reject") !== "reject") return [];
      const found: Finding[] = [];
      const path = ["steps", index, "writes", place];
      const fix = `Give ${key} another policy under keys (last_write, append, union, …), or let each write a key of its own.`;
      if (step.foreach !== undefined)
        found.push(
          tell(definition, false, path, "workflow.parallel_writers", `all items of ${step.id} write ${key}, whose policy is reject`, fix),
        );
      const other = firstOf(earlier, (beside) => !isOpposite(step.when, stepAt(definition, beside).when));
      if (other === undefined) return found;
      const message = `${stepAt(definition, other).id} and ${step.id} both write ${key}, whose policy is reject, and may run at the same time`;
      return [...found, tell(definition, false, path, "workflow.parallel_writers", message, fix)];
    }),
  );
}

/** `a` and `!(a)`: of the two, one is always skipped. */
function isOpposite(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return isNegation(one.trim(), other.trim()) || isNegation(other.trim(), one.trim());
}

function isNegation(one: string, other: string): boolean {
  return one === `!(${other})` || (/^[\w.]+$/.test(other) && one === `!${other}`);
}

function firstOf(set: StepSet, fits: (place: number) => boolean): number | undefined {
  for (const place of placesIn(set)) if (fits(place)) return place;
  return undefined;
}

function stepAt({ steps }: Workflow, index: number): Workflow["steps"][number] {
  return steps[index] as Workflow["steps"][number];
}

import type { Workflow } from "../../contract/workflows.ts";

/** Some steps: one bit for each, by its place in the file. A thousand steps in a chain are half a million pairs. */
export type StepSet = bigint;

/** Who comes before whom, whatever happens. Steps are their places in the file. */
export interface StepOrder {
  readonly places: ReadonlyMap<string, number>;
  /** Those that are over before `step` begins. */
  before(step: number): StepSet;
  /** Of these, those that may run at the same time as `step`. */
  beside(step: number, among: StepSet): StepSet;
}

/** Null where steps are unknown, stand twice, or need each other in a circle. */
export function stepOrder({ steps }: Workflow): StepOrder | null {
  const places = new Map(steps.map(({ id }, index) => [id, index]));
  if (places.size < steps.length) return null;
  const before: (StepSet | undefined)[] = [];
  const order: number[] = [];
  const open = new Set<number>();
  const visit = (index: number): StepSet | null => {
    const done = before[index];
    if (done !== undefined) return done;
    if (open.has(index)) return null;
    open.add(index);
    let set = 0n;
    for (const need of steps[index]?.needs ?? []) {
      const place = places.get(need);
      const further = place === undefined ? null : visit(place);
      if (place === undefined || further === null) return null;
      set |= further | only(place);
    }
    open.delete(index);
    before[index] = set;
    order.push(index);
    return set;
  };
  for (const index of steps.keys()) if (visit(index) === null) return null;
  const after = steps.map(() => 0n);
  for (const index of order.toReversed())
    for (const need of steps[index]?.needs ?? []) {
      const place = places.get(need) as number;
      after[place] = (after[place] as StepSet) | (after[index] as StepSet) | only(index);
    }
  const beside = steps.map((_, index) => ~((before[index] as StepSet) | (after[index] as StepSet) | only(index)));
  return {
    places,
    before: (step) => before[step] as StepSet,
    beside: (step, among) => among & (beside[step] as StepSet),
  };
}

export function only(place: number): StepSet {
  return 1n << BigInt(place);
}

/** Their places, rising. */
export function* placesIn(set: StepSet): Generator<number> {
  for (let rest = set; rest !== 0n; rest &= rest - 1n) yield (rest & -rest).toString(2).length - 1;
}

import type { Workflow } from "../../contract/workflows.ts";

/** Who comes before whom, whatever happens. Steps are their places in the file. */
export interface StepOrder {
  readonly places: ReadonlyMap<string, number>;
  /** Whether `a` is over before `b` begins. */
  isBefore(a: number, b: number): boolean;
  /** Of these, those that may run at the same time as `step`. */
  besides(step: number, others: readonly number[]): number[];
}

/** Null where steps are unknown, stand twice, or need each other in a circle. */
export function stepOrder({ steps }: Workflow): StepOrder | null {
  const places = new Map(steps.map(({ id }, index) => [id, index]));
  if (places.size < steps.length) return null;
  // One bit for each step that comes before: a thousand steps in a chain are half a million pairs.
  const before: (bigint | undefined)[] = [];
  const open = new Set<number>();
  const visit = (index: number): bigint | null => {
    const done = before[index];
    if (done !== undefined) return done;
    if (open.has(index)) return null;
    open.add(index);
    let mask = 0n;
    for (const need of steps[index]?.needs ?? []) {
      const place = places.get(need);
      const further = place === undefined ? null : visit(place);
      if (place === undefined || further === null) return null;
      mask |= further | (1n << BigInt(place));
    }
    open.delete(index);
    before[index] = mask;
    return mask;
  };
  for (const index of steps.keys()) if (visit(index) === null) return null;
  const isBefore = (a: number, b: number): boolean => (((before[b] as bigint) >> BigInt(a)) & 1n) === 1n;
  return {
    places,
    isBefore,
    besides: (step, others) => others.filter((other) => other !== step && !isBefore(other, step) && !isBefore(step, other)),
  };
}

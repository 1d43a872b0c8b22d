import type { RunStepView } from "../contract/workflows.ts";

/** A step, and what is drawn before it: branches that run side by side hang beside each other, what follows on one stands under it. */
export interface PlacedStep {
  readonly step: RunStepView;
  readonly branch: string;
}

const ITEM = /^(.+)\[\d+\]$/;

/** The step that an item of a `foreach` belongs to; null: it is a step of its own. */
export function stepOfItem(id: string): string | null {
  return ITEM.exec(id)?.[1] ?? null;
}

/**
 * Every step once, in the order in which things can happen. A step stands under the nearest one that every way to it goes through, so that
 * two branches that meet again are followed by what they meet in, at the height where they parted.
 */
export function layOut(steps: readonly RunStepView[]): PlacedStep[] {
  const items = new Map<string, RunStepView[]>();
  const whole = steps.filter((step) => {
    const of = stepOfItem(step.id);
    if (of !== null) items.set(of, [...(items.get(of) ?? []), step]);
    return of === null;
  });
  const { below, rank } = placesOf(whole);
  const placed: PlacedStep[] = [];
  const draw = (parent: string | null, before: string): void => {
    const groups = Map.groupBy(below.get(parent) ?? [], ({ id }) => rank.get(id) ?? 0);
    for (const [, group] of [...groups].sort(([a], [b]) => a - b))
      for (const [index, step] of group.entries()) {
        const last = index === group.length - 1;
        const apart = group.length > 1;
        const after = apart ? `${before}${last ? "  " : "│ "}` : before;
        placed.push({ step, branch: apart ? `${before}${last ? "└ " : "├ "}` : before });
        for (const [at, item] of (items.get(step.id) ?? []).entries())
          placed.push({ step: item, branch: `${after}${at === (items.get(step.id)?.length ?? 0) - 1 ? "  └ " : "  ├ "}` });
        draw(step.id, after);
      }
  };
  draw(null, "");
  return placed;
}

function placesOf(steps: readonly RunStepView[]): { below: Map<string | null, RunStepView[]>; rank: Map<string, number> } {
  const parents = new Map<string, string | null>();
  const depths = new Map<string | null, number>([[null, 0]]);
  const rank = new Map<string, number>();
  const below = new Map<string | null, RunStepView[]>();
  const parentOf = (id: string | null): string | null => (id === null ? null : (parents.get(id) ?? null));
  const depth = (id: string | null): number => depths.get(id) ?? 0;
  const common = (one: string | null, other: string | null): string | null => {
    let [a, b] = [one, other];
    while (a !== b) [a, b] = depth(a) >= depth(b) ? [parentOf(a), b] : [a, parentOf(b)];
    return a;
  };
  for (const step of inOrder(steps)) {
    const needs = step.needs.filter((need) => parents.has(need));
    const parent = needs.length === 0 ? null : needs.reduce<string | null>((a, b) => common(a, b), needs[0] ?? null);
    parents.set(step.id, parent);
    depths.set(step.id, depth(parent) + 1);
    below.set(parent, [...(below.get(parent) ?? []), step]);
    // After those of its neighbours that it rests on, at whatever depth below them.
    const neighbours = needs.flatMap((need) => {
      let at: string | null = need;
      while (at !== null && depth(at) > depth(parent) + 1) at = parentOf(at);
      return at === null || at === parent ? [] : [rank.get(at) ?? 0];
    });
    rank.set(step.id, neighbours.length === 0 ? 0 : Math.max(...neighbours) + 1);
  }
  return { below, rank };
}

/** Each after those it needs, otherwise as they are written. */
function inOrder(steps: readonly RunStepView[]): RunStepView[] {
  const known = new Map(steps.map((step) => [step.id, step]));
  const seen = new Set<string>();
  const order: RunStepView[] = [];
  for (const first of steps) {
    const open = [first];
    for (let step = open.at(-1); step !== undefined; step = open.at(-1)) {
      const next = seen.has(step.id) ? undefined : step.needs.map((need) => known.get(need)).find((need) => need && !seen.has(need.id));
      if (next && !open.includes(next)) {
        open.push(next);
        continue;
      }
      open.pop();
      if (seen.has(step.id)) continue;
      seen.add(step.id);
      order.push(step);
    }
  }
  return order;
}

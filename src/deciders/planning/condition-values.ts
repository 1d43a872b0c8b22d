/** How large the values are that a condition is asked about. */
export interface Cost {
  values: number;
  characters: number;
}

/** A loop may compare each value with every other, at each node of the expression: some 50 ms of a thread that has other things to do. */
const MAX_COMPARISONS = 5_000_000;
const MAX_CHARACTERS = 500_000_000;
const MAX_DEPTH = 100;

/** Values as CEL knows them: whole numbers are integers, so that `input.count + 1` is a sum. Counts what it sees. */
export function celValue(value: unknown, cost: Cost, depth = 0): unknown {
  cost.values++;
  if (depth > MAX_DEPTH) throw new Error("values are nested too deeply");
  if (typeof value === "string") cost.characters += value.length;
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (value === undefined) return null;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => celValue(item, cost, depth + 1));
  // An object with a key such as `constructor` would not be taken for one.
  return new Map(Object.entries(value).map(([key, inner]) => [key, celValue(inner, cost, depth + 1)]));
}

/** Without a loop the work is a walk over the values. */
export function isTooMuch({ values, characters }: Cost, { loops, nodes }: { readonly loops: number; readonly nodes: number }): boolean {
  return loops > 0 && (values * values * nodes > MAX_COMPARISONS || values * characters * nodes > MAX_CHARACTERS);
}

import type { Policy } from "../../contract/pools.ts";
import { canonicalJson } from "../../kernel/canonical-json.ts";
import { Failure } from "../../kernel/failure.ts";

/** `same`: the current value stands, and nothing is written. */
export type Combined = { readonly same: true } | { readonly same: false; readonly value: unknown };

/** Whether the result contains what was there before. */
export function buildsOnCurrent(policy: Policy): boolean {
  return policy !== "reject" && policy !== "last_write";
}

/** `current` is undefined where there is no entry. */
export function combine(policy: Policy, key: string, current: unknown, value: unknown): Combined {
  switch (policy) {
    case "reject":
    case "last_write":
      return { same: false, value };
    case "append":
      return { same: false, value: [...listOf(policy, key, current), ...items(value)] };
    case "union":
      return union(listOf(policy, key, current), items(value), current === undefined);
    case "merge":
      return { same: false, value: mergePatch(current, value) };
    case "max":
    case "min":
      return extreme(policy, key, current, value);
  }
}

/** A list is added item by item, anything else as one item. */
function items(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function listOf(policy: Policy, key: string, current: unknown): readonly unknown[] {
  if (current === undefined) return [];
  if (Array.isArray(current)) return current;
  throw new Failure("pool.invalid_value", `"${key}" has the policy ${policy}, but its current value is no list`);
}

function union(current: readonly unknown[], added: readonly unknown[], isNew: boolean): Combined {
  const known = new Set(current.map(canonicalJson));
  const value = [...current];
  for (const item of added) {
    const text = canonicalJson(item);
    if (known.has(text)) continue;
    known.add(text);
    value.push(item);
  }
  return value.length === current.length && !isNew ? { same: true } : { same: false, value };
}

function extreme(policy: "max" | "min", key: string, current: unknown, value: unknown): Combined {
  if (typeof value !== "number") throw new Failure("pool.invalid_value", `"${key}" has the policy ${policy}, and takes numbers only`);
  if (current === undefined) return { same: false, value };
  if (typeof current !== "number")
    throw new Failure("pool.invalid_value", `"${key}" has the policy ${policy}, but its current value is no number`);
  const wins = policy === "max" ? value > current : value < current;
  return wins ? { same: false, value } : { same: true };
}

/** RFC 7396. Properties are defined, not assigned: `__proto__` is a name like any other. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Record<string, unknown> = {};
  const put = (name: string, value: unknown): void => {
    Object.defineProperty(merged, name, { value, enumerable: true, configurable: true, writable: true });
  };
  const base = isRecord(target) ? target : {};
  for (const name of Object.keys(base)) if (!Object.hasOwn(patch, name)) put(name, base[name]);
  for (const name of Object.keys(patch)) {
    if (patch[name] === null) continue;
    put(name, mergePatch(Object.hasOwn(base, name) ? base[name] : undefined, patch[name]));
  }
  return merged;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

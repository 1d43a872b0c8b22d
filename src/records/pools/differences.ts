import type { Change } from "../../contract/pools.ts";
import { canonicalJson } from "../../kernel/canonical-json.ts";

const MOST_CHANGES = 50;
const LONGEST_VALUE = 300;

export interface Changes {
  readonly changes: readonly Change[];
  readonly truncated: boolean;
}

/**
 * What it takes to get from one value to the other, as JSON pointers with the values before and after. Lists are compared by
 * position, except that items added at the end are just that. Bounded, as it is meant for a model's context.
 */
export function differences(before: unknown, after: unknown, most = MOST_CHANGES): Changes {
  const changes: Change[] = [];
  const walk = (path: string, left: unknown, right: unknown): boolean => {
    if (left === right) return true;
    const names = namesToCompare(left, right);
    if (names === undefined) {
      if (changes.length === most) return false;
      changes.push({
        path,
        ...(left === undefined ? {} : { before: short(left) }),
        ...(right === undefined ? {} : { after: short(right) }),
      });
      return true;
    }
    return names.every((name) => walk(`${path}/${escaped(name)}`, own(left, name), own(right, name)));
  };
  const whole = walk("", before, after);
  return { changes, truncated: !whole };
}

/** Paths that both sides touch, each in its own way: these need a decision, the others can be merged. */
export function overlapping(theirs: readonly Change[], ours: readonly Change[]): string[] {
  const touches = (a: string, b: string): boolean => a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
  return ours
    .filter((mine) => theirs.some((other) => touches(mine.path, other.path) && canonicalJson(mine) !== canonicalJson(other)))
    .map((mine) => mine.path);
}

function namesToCompare(left: unknown, right: unknown): string[] | undefined {
  if (Array.isArray(left) && Array.isArray(right))
    return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => `${index}`);
  if (!isRecord(left) || !isRecord(right)) return undefined;
  return [...new Set([...Object.keys(left), ...Object.keys(right)])];
}

function own(value: unknown, name: string): unknown {
  return Object.hasOwn(value as object, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function short(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text.length <= LONGEST_VALUE ? value : `${text.slice(0, LONGEST_VALUE).toWellFormed()}…`;
}

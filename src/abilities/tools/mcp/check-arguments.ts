import { Validator } from "@cfworker/json-schema";
import { Failure } from "../../../kernel/failure.ts";
import type { ListedTool } from "../../../records/mcp/tool-list.ts";

/** What takes more steps than this to check is left to the server: a schema from outside must not stop the house. */
const STEPS_AT_MOST = 1_000_000;
const TOLD_AT_MOST = 5;
/** Regular expressions and comparisons of all with all: their cost cannot be told from their length. */
const UNBOUNDED: readonly string[] = ["pattern", "patternProperties", "format", "uniqueItems"];

export type CheckArguments = (args: unknown) => unknown;

/** Checks arguments before they are sent, so that a model is told what was expected. Never more strictly than the server's own schema. */
export function argumentCheck(name: string, { inputSchema }: ListedTool): CheckArguments {
  const cost = usable(() => costOf(inputSchema));
  const validator = cost === null ? null : usable(() => new Validator(bounded(inputSchema) as object, "2020-12", false));
  return (args) => {
    if (typeof args !== "object" || args === null || Array.isArray(args))
      throw new Failure("tool.bad_arguments", `${name}: the arguments are not an object`);
    if (validator === null || cost === null || cost * valuesIn(args) > STEPS_AT_MOST) return args;
    const { valid, errors } = validate(validator, args);
    if (valid) return args;
    // Models write null for what they leave out.
    const without = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
    if (validate(validator, without).valid) return without;
    const problems = errors.slice(-TOLD_AT_MOST).map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
    throw new Failure("tool.bad_arguments", `${name}: ${problems.join(" ").slice(0, 1_000)}`);
  };
}

interface Validates {
  validate(value: unknown): { readonly valid: boolean; readonly errors: readonly { instanceLocation: string; error: string }[] };
}

function usable<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    return null;
  }
}

/** A schema that cannot be used (a reference that leads nowhere) refuses nothing. */
function validate(validator: Validates, value: unknown): ReturnType<Validates["validate"]> {
  try {
    return validator.validate(value);
  } catch {
    return { valid: true, errors: [] };
  }
}

function bounded(schema: unknown, isProperties = false): unknown {
  if (Array.isArray(schema)) return schema.map((inner) => bounded(inner));
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key]) => isProperties || !UNBOUNDED.includes(key))
      .map(([key, inner]) => [key, bounded(inner, !isProperties && (key === "properties" || key === "$defs" || key === "definitions"))]),
  );
}

/** How many steps one value can cost at most, references followed; null: one leads back to itself, and nobody can tell. */
function costOf(root: unknown): number | null {
  const known = new Map<string, number | null>();
  const cost = (value: unknown): number | null => {
    if (typeof value !== "object" || value === null) return 1;
    let sum = 1;
    for (const [key, inner] of Object.entries(value)) {
      const one = key === "$ref" || key === "$dynamicRef" ? referenced(String(inner)) : isDefinitions(key) ? 0 : cost(inner);
      if (one === null) return null;
      sum = Math.min(sum + one, Number.MAX_SAFE_INTEGER / 2);
    }
    return sum;
  };
  const referenced = (pointer: string): number | null => {
    const before = known.get(pointer);
    if (before !== undefined) return before;
    known.set(pointer, null);
    const target = pointer === "#" ? root : at(root, pointer);
    const result = target === undefined ? null : cost(target);
    known.set(pointer, result);
    return result;
  };
  return cost(root);
}

function isDefinitions(key: string): boolean {
  return key === "$defs" || key === "definitions";
}

function at(root: unknown, pointer: string): unknown {
  if (!pointer.startsWith("#/")) return undefined;
  return pointer
    .slice(2)
    .split("/")
    .map((part) => decodeURI(part).replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>(
      (here, key) =>
        typeof here === "object" && here !== null && Object.hasOwn(here, key) ? (here as Record<string, unknown>)[key] : undefined,
      root,
    );
}

function valuesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  for (const inner of Object.values(value)) count += valuesIn(inner);
  return count;
}

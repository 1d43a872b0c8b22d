import type { ConfigPath } from "./config-problem.ts";

/** Undefined where there is nothing, whatever is in the way. Only what the file itself says: no key is found on a prototype. */
export function valueAt(value: unknown, path: ConfigPath): unknown {
  return path.reduce<unknown>((inner, key) => (isContainer(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), value);
}

function isContainer(value: unknown): value is Record<string | number, unknown> {
  return typeof value === "object" && value !== null;
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return isContainer(value) && !Array.isArray(value);
}

/** The map that stands there, or an empty one. */
export function mapAt(value: unknown, path: ConfigPath): Readonly<Record<string, unknown>> {
  const found = valueAt(value, path);
  return isMap(found) ? found : {};
}

/** The list that stands there, or an empty one. */
export function listAt(value: unknown, path: ConfigPath): readonly unknown[] {
  const found = valueAt(value, path);
  return Array.isArray(found) ? found : [];
}

import { createHash } from "node:crypto";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** JSON with sorted keys: the same value always gives the same text, whatever order it was built in. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (inner === null || typeof inner !== "object" || Array.isArray(inner)) return inner;
    const record = inner as Record<string, unknown>;
    const keys = Object.keys(record);
    // A copy of every small object of a large value would take most of the time.
    if (isSorted(keys)) return inner;
    const sorted: Record<string, unknown> = Object.create(null);
    for (const key of keys.sort()) sorted[key] = record[key];
    return sorted;
  });
}

function isSorted(keys: readonly string[]): boolean {
  for (let index = 1; index < keys.length; index++) if ((keys[index - 1] as string) > (keys[index] as string)) return false;
  return true;
}

export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

import { hash } from "node:crypto";

const FEW = 24;

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Part of a value, as `canonicalJson` has written it before. */
export class WrittenJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * JSON with sorted keys: the same value always gives the same text, whatever order it was built in. Written by hand: with a function that looks at each
 * value, `JSON.stringify` takes four times as long.
 */
export function canonicalJson(value: unknown): string {
  return written(value) as string;
}

function written(value: unknown): string | undefined {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (value instanceof WrittenJson) return value.text;
  if (Array.isArray(value)) {
    let text = "";
    // By number: what is missing in between is written too.
    for (let index = 0; index < value.length; index++) text += `${index === 0 ? "" : ","}${written(value[index]) ?? "null"}`;
    return `[${text}]`;
  }
  if ("toJSON" in value && typeof value.toJSON === "function") return written(value.toJSON());
  const record = value as Record<string, unknown>;
  let text = "";
  for (const key of inOrder(Object.keys(record))) {
    const inner = written(record[key]);
    if (inner !== undefined) text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${inner}`;
  }
  return `{${text}}`;
}

/**
 * Those that are numbers come first in every object, and stay there: as a copy with sorted keys would have it. The few keys that most objects have
 * are put in order where they are: `sort` made a thirtieth of all garbage of a turn.
 */
function inOrder(keys: string[]): string[] {
  let first = 0;
  while (first < keys.length && isIndex(keys[first] as string)) first++;
  if (keys.length > FEW) return [...keys.slice(0, first), ...keys.slice(first).sort()];
  for (let index = first + 1; index < keys.length; index++) {
    const key = keys[index] as string;
    let place = index;
    for (; place > first && (keys[place - 1] as string) > key; place--) keys[place] = keys[place - 1] as string;
    keys[place] = key;
  }
  return keys;
}

function isIndex(key: string): boolean {
  const mark = key.charCodeAt(0);
  return mark >= 0x30 && mark <= 0x39 && String(Number(key) >>> 0) === key && Number(key) < 4_294_967_295;
}

export function sha256(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

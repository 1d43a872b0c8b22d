import { Failure } from "./failure.ts";

/** Deeper values are nobody's data, and would overflow the stack of whoever walks them. */
const MAX_DEPTH = 100;

/** Bytes from outside as a JSON value that is safe to walk and to merge. `maxValues`: small ones cost much more than their bytes. */
export function readJson(bytes: Uint8Array, maxValues = Number.POSITIVE_INFINITY): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new Failure("request.malformed", "the body is not UTF-8", { cause: error });
  }
  refuseLarge(text, maxValues);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Failure("request.malformed", "the body is not JSON", { cause: error });
  }
  // Only a name that is spelt out, or one that is written with escapes, can be the one that is looked for.
  if (text.includes("__proto__") || text.includes("\\u")) refusePrototype(value);
  return value;
}

function refuseLarge(text: string, maxValues: number): void {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const character = text.charCodeAt(index);
    if (inString) {
      if (character === 92 /* \ */) index++;
      else if (character === 34 /* " */) inString = false;
    } else if (character === 34) inString = true;
    else if (character === 44 /* , */) values++;
    else if (character === 91 /* [ */ || character === 123 /* { */) {
      values++;
      if (++depth > MAX_DEPTH) throw new Failure("request.malformed", `the body is nested more than ${MAX_DEPTH} levels deep`);
    } else if (character === 93 /* ] */ || character === 125 /* } */) depth--;
    if (values > maxValues) throw new Failure("request.malformed", `the body holds more than ${maxValues} values`);
  }
}

/** The depth is bounded by now. */
function refusePrototype(value: unknown): void {
  if (value === null || typeof value !== "object") return;
  if (Object.hasOwn(value, "__proto__")) throw new Failure("request.malformed", "the name __proto__ is refused");
  for (const inner of Object.values(value)) refusePrototype(inner);
}

import { Failure } from "../kernel/failure.ts";
import { encodeScope, type Scope } from "../kernel/scope.ts";

/** An index row of PostgreSQL holds about 2,700 bytes; two keys of this many characters fit, whatever they consist of. */
const MAX_KEY = 300;
const MAX_SCOPE_BYTES = 1_200;

/** A scope as a key of a table: long enough for everything sensible, and the same limit on both databases. */
export function scopeKey(scope: Scope): string {
  const text = encodeScope(scope);
  if (text.length > MAX_SCOPE_BYTES / 4 && Buffer.byteLength(text) > MAX_SCOPE_BYTES) {
    throw new Failure("request.too_large", `a name of ${Buffer.byteLength(text)} bytes is too long; ${MAX_SCOPE_BYTES} are possible`);
  }
  return text;
}

export function plainKey(key: string): string {
  if (key.length > MAX_KEY)
    throw new Failure("request.too_large", `a key of ${key.length} characters is too long; ${MAX_KEY} are possible`);
  return key;
}

/** Durations may be fractions where they are computed; a database's clock counts whole milliseconds. */
export function wholeMs(ms: number): number {
  return Math.round(ms);
}

import { type Caller, isNamed } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { noEntry } from "./access.ts";
import type { Head } from "./heads.ts";
import { combine } from "./policies.ts";
import { type KeyRules, largestValue } from "./rules.ts";
import { type StoredText, storedText } from "./values.ts";
import { entryOf, type VersionRow } from "./version-rows.ts";

export interface PoolWrite {
  readonly key: string;
  readonly value?: unknown;
  /** The version it replaces; null: there must be no entry yet. */
  readonly ifVersion?: number | null;
  readonly ttlMs?: number | null;
  readonly note?: string | null | undefined;
  readonly remove?: true | undefined;
  /** In the place of what is there, whatever the key makes of two values and asks of one. For the house itself, which only takes away. */
  readonly instead?: true;
}

export interface Decided {
  readonly write: PoolWrite;
  readonly head: Head;
  /** `same`: the current entry stands. */
  readonly outcome: "same" | "remove" | "put";
  readonly stored: StoredText | null;
  readonly spills: boolean;
  /** What the new value contains of the old one. */
  readonly base: VersionRow | undefined;
  readonly external: boolean;
  /** A rule of the key raised what would have been external. */
  readonly endorsed: boolean;
  readonly ttlMs: number | null;
}

/**
 * What the write would do, or why it may not; whether it conflicts was asked before. Nothing is changed here. `base` is the current
 * version and its value in full where the policy builds upon it.
 */
export function decideWrite(
  caller: Caller,
  pool: string,
  write: PoolWrite,
  rules: KeyRules,
  head: Head,
  tainted: boolean,
  base: { readonly row: VersionRow; readonly value: unknown } | undefined,
): Decided {
  const { key } = write;
  const raised = tainted && isNamed(caller, rules.endorsers);
  const plain = { write, head, stored: null, spills: false, base: undefined, external: tainted && !raised, endorsed: false, ttlMs: null };
  if (write.remove) {
    if (!head.current) throw noEntry(pool, key);
    return { ...plain, outcome: "remove" };
  }
  const combined = write.instead ? { same: false as const, value: write.value } : combine(rules.policy, key, base?.value, write.value);
  if (combined.same) return { ...plain, outcome: "same", base: base?.row };
  if (!write.instead) rules.check?.(key, combined.value);
  const stored = storedText(key, combined.value);
  const limit = write.instead ? Number.POSITIVE_INFINITY : largestValue(rules);
  if (stored.size > limit)
    throw new Failure("pool.too_large", `the value of "${key}" has ${stored.size} bytes; ${limit} are possible`, {
      details: { key, size: stored.size, max: limit },
    });
  // What was there before is not the writer's to endorse.
  const external = (tainted && !raised) || base?.row.external === 1;
  const ttlMs = write.ttlMs ?? rules.ttlMs;
  const spills = stored.size > rules.maxBytes;
  return { write, head, outcome: "put", stored, spills, base: base?.row, external, endorsed: raised && !external, ttlMs };
}

/** Why the write does not fit the current version; undefined: it does. */
export function conflictOf(write: PoolWrite, rules: KeyRules, { current }: Head): string | undefined {
  const { ifVersion } = write;
  if (ifVersion === undefined) {
    const needsVersion = current !== undefined && rules.policy === "reject" && !write.remove;
    return needsVersion ? "the write does not say which version it replaces" : undefined;
  }
  if ((current?.version ?? null) === ifVersion) return undefined;
  return ifVersion === null ? "there must be none yet" : `the write is for version ${ifVersion}`;
}

export function conflict(pool: string, key: string, current: VersionRow | undefined, why: string): Failure {
  const there = current ? `is at version ${current.version}` : "has no entry";
  return new Failure("pool.conflict", `"${key}" in the pool "${pool}" ${there}; ${why}`, {
    details: { pool, key, current: current ? entryOf(current) : null },
  });
}

import { type Caller, isNamed } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { KeyRules, PoolRules } from "./rules.ts";

/** The keys a step has declared: narrower than what its agent may do elsewhere. */
export interface Grant {
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

export function mayRead(caller: Caller, rules: KeyRules): boolean {
  if (caller.kind === "operator" || caller.kind === "reader") return true;
  return isNamed(caller, rules.readers) || isNamed(caller, rules.writers);
}

export function mayWrite(caller: Caller, rules: KeyRules): boolean {
  return caller.kind === "operator" || isNamed(caller, rules.writers);
}

/** Whether the caller may read any key at all: otherwise the pool does not exist for it. */
export function isVisible(caller: Caller, rules: PoolRules): boolean {
  return rules.all().some((key) => mayRead(caller, key));
}

/** The same answers for what is not there and for what the caller may not see. */
export function noPool(name: string): Failure {
  return new Failure("request.not_found", `there is no pool "${name}"`);
}

export function noEntry(pool: string, key: string): Failure {
  return new Failure("request.not_found", `there is no entry "${key}" in the pool "${pool}"`);
}

export function noVersion(pool: string, key: string, version: number): Failure {
  return new Failure("request.not_found", `there is no version ${version} of "${key}" in the pool "${pool}"`);
}

export function refuseUndeclared(grant: Grant | undefined, verb: "reads" | "writes", key: string): void {
  if (!grant) return;
  // Whoever declares that it writes a key may look at it: a conflict shows it the entry anyway.
  const declared = grant[verb].includes(key) || (verb === "reads" && grant.writes.includes(key));
  if (declared) return;
  const { reads, writes } = grant;
  const told = `it reads ${inWords(reads)} and writes ${inWords(writes)}`;
  throw new Failure("request.forbidden", `this step has not declared that it ${verb} "${key}": ${told}`, {
    details: { key, reads, writes },
  });
}

const TOLD_AT_MOST = 50;
function inWords(keys: readonly string[]): string {
  if (keys.length === 0) return "nothing";
  const more = keys.length > TOLD_AT_MOST ? ` and ${keys.length - TOLD_AT_MOST} more` : "";
  return (
    keys
      .slice(0, TOLD_AT_MOST)
      .map((key) => `"${key}"`)
      .join(", ") + more
  );
}

/**
 * Who asks, as the gateway knows it: from a token, a turn or a process. Never from what the caller says about itself.
 * `reader` is a token that may look at everything and change nothing.
 */
export type CallerKind = "operator" | "reader" | "agent" | "guest" | "channel";

export interface Caller {
  readonly kind: CallerKind;
  /** A bare name, the same wherever it appears: holder, from, author, electorate, readers. */
  readonly name: string;
  readonly roles: readonly string[];
  /** The turn, step and tool call it acts in; null outside a turn. */
  readonly run: string | null;
  readonly step: string | null;
  readonly call: string | null;
  /** The pool that its task was given: one that belongs to a run is open to nobody else. */
  readonly pool?: string | undefined;
}

export const OPERATOR: Caller = { kind: "operator", name: "operator", roles: [], run: null, step: null, call: null };

/** Whom "*" means in a list of identities: every agent and guest, nobody else. */
export function isNamed(caller: Caller, names: readonly string[]): boolean {
  if (caller.kind !== "agent" && caller.kind !== "guest") return false;
  return names.includes("*") || names.includes(caller.name);
}

/** One thing that was looked at. */
export interface Check {
  readonly id: string;
  readonly severity: "ok" | "warning" | "error";
  readonly found: string;
  /** What to do about it; empty when there is nothing. */
  readonly fix: string;
  /** The daemon does not start with this. */
  readonly blocks: boolean;
  /** What was done about it just now; null for nothing. */
  readonly repaired: string | null;
}

/** A check, and what may be done about it without asking: nothing that could lose or reveal anything. */
export interface Finding extends Omit<Check, "repaired"> {
  readonly repair?: { readonly does: string; run(): void };
}

export function ok(id: string, found: string): Finding {
  return { id, severity: "ok", found, fix: "", blocks: false };
}

export function warning(id: string, found: string, fix: string, repair?: Finding["repair"]): Finding {
  return { id, severity: "warning", found, fix, blocks: false, ...(repair ? { repair } : {}) };
}

/** It starts all the same, but something in it does not work. */
export function broken(id: string, found: string, fix: string): Finding {
  return { id, severity: "error", found, fix, blocks: false };
}

export function blocking(id: string, found: string, fix: string): Finding {
  return { id, severity: "error", found, fix, blocks: true };
}

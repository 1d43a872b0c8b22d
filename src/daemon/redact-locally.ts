import { Redaction } from "../kernel/redact.ts";
import type { Whereabouts } from "../settings/home.ts";
import { loadSettings } from "../settings/load-settings.ts";

/** An error as it may be shown: a database or a provider may have quoted the password it refused. */
export function redactedError(where: Whereabouts, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const redaction = new Redaction();
  try {
    redaction.add(loadSettings(where, process.env).secrets.values());
  } catch {
    // A config that cannot be read hands out no secrets either.
    return error;
  }
  // Whatever class it is of keeps its code.
  error.message = redaction.text(error.message);
  return error;
}

/** Every kind of event the ledger may hold: noun and past-tense verb. A closed union, so that switches over it are exhaustive. */
export const EVENT_TYPES = [
  "daemon.started",
  "daemon.stopped",
  "message.admitted",
  "message.refused",
  "route.decided",
  "turn.started",
  "turn.completed",
  "turn.retried",
  "turn.failed",
  "reply.sent",
  "reply.abandoned",
  "store.restored",
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** One event as readers see it, on the wire too. */
export interface LedgerEvent {
  readonly seq: number;
  readonly at: number;
  readonly type: EventType;
  readonly actor: string;
  readonly causedBy: number | null;
  readonly subject: readonly string[];
  readonly data: unknown;
}

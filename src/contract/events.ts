/** Every kind of event the ledger may hold: noun and past-tense verb. A closed union, so that switches over it are exhaustive. */
export const EVENT_TYPES = [
  "daemon.started",
  "daemon.stopped",
  "config.applied",
  "config.rejected",
  "message.admitted",
  "message.refused",
  "route.decided",
  "turn.started",
  "turn.completed",
  "turn.retried",
  "turn.failed",
  "turn.held",
  "turn.restarted",
  "turn.waited",
  "turn.steered",
  "turn.merged",
  "turn.compacted",
  "model.answered",
  "tool.called",
  "tool.settled",
  "tool.refused",
  "budget.refused",
  "memory.saved",
  "memory.forgotten",
  "mcp.pinned",
  "mcp.changed",
  "command.ran",
  "reply.sent",
  "reply.abandoned",
  "store.restored",
  "token.created",
  "token.revoked",
  "pool.created",
  "pool.changed",
  "pool.sealed",
  "pool.removed",
  "pool.written",
  "pool.deleted",
  "pool.expired",
  "pool.conflicted",
  "pool.retracted",
  "pool.endorsed",
  "claim.taken",
  "claim.renewed",
  "claim.released",
  "claim.lost",
  "mail.sent",
  "mail.received",
  "mail.acked",
  "mail.returned",
  "mail.died",
  "mail.expired",
  "proposal.opened",
  "proposal.voted",
  "proposal.committed",
  "proposal.aborted",
  "approval.asked",
  "approval.answered",
  "approval.used",
  "approval.expired",
  "approval.voided",
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

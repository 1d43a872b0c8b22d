/**
 * Places where a test stops the process at an exact line. In production nothing listens: one call of an empty function.
 * The list is closed, so that a chaos run can say which points it has hit.
 */
export const CRASH_POINTS = [
  "store.migrate.statement-done",
  "store.batch.begun",
  "store.batch.operation-done",
  "store.commit.before",
  "store.commit.after",
  "store.acknowledge.before",
  "queue.claim.done",
  "queue.settle.before",
  "idempotency.begun",
  "idempotency.finish.before",
  "ledger.seal.before",
  "blob.stored",
  "message.received",
  "message.admitted",
  "turn.begun",
  "model.response.before",
  "model.response.recorded",
  "tool.intended",
  "tool.ran",
  "tool.settled",
  "turn.steered",
  "turn.compacted",
  "turn.waits",
  "turn.answered",
  "turn.committed",
  "reply.intended",
  "reply.delivered",
  "reply.recorded",
  "command.ran",
  "turn.held",
  "turns.woken",
  "config.stored",
  "task.opened",
  "turn.parked",
  "task.closed",
  "remote.intended",
  "remote.sent",
  "workflow.started",
  "step.settled",
  "schedule.fired",
] as const;

export type CrashPoint = (typeof CRASH_POINTS)[number];

/** Called with the name of the point just reached. */
export type ReachedPoint = (point: CrashPoint) => void;

export const noCrashPoints: ReachedPoint = () => {};

import type { ClaimedWork, Taker } from "../store/work-queue.ts";

/** What the rows of the work queue ask for, and what each of them carries. `causedBy`: the event that made the row. */
export const TURN_WORK = "turn";
export interface TurnPayload {
  readonly runId: string;
  readonly causedBy: number;
}

/** Turns of a session run one after another. */
export function sessionLane(sessionKey: string): readonly string[] {
  return ["session", sessionKey];
}

export const DELIVERY_WORK = "delivery";
export interface DeliveryPayload {
  readonly replyId: string;
  readonly runId: string;
  readonly causedBy: number;
}

/** A task that an agent elsewhere does: it is sent, looked at, or told to stop. */
export const REMOTE_WORK = "remote";
export interface RemotePayload {
  readonly taskId: string;
  readonly causedBy: number;
}

/** A place for work of this node that is kept free until its row is stored. */
export interface KeptPlace extends Taker {
  begin(work: ClaimedWork): void;
  /** Nothing became of it; after `begin` it does nothing. */
  giveUp(): void;
}

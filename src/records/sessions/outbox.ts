import type { Address } from "../../deciders/routing/address.ts";
import type { Reads, Tx } from "../../store/engine.ts";

/**
 * A reply on its way to the platform.
 *
 *   pending → sent | unknown (every attempt to deliver it ended without an answer)
 */
export interface Reply {
  readonly id: string;
  readonly runId: string;
  readonly address: Address;
  readonly text: string;
}

export type OutboxState = "pending" | "sent" | "unknown";

interface OutboxRow {
  readonly id: string;
  readonly run_id: string;
  readonly address: string;
  readonly body: string;
  readonly state: OutboxState;
}

export async function addReply(tx: Tx, reply: Reply): Promise<void> {
  await tx.run`insert into outbox (id, run_id, address, body, state, created_at)
    values (${reply.id}, ${reply.runId}, ${JSON.stringify(reply.address)}, ${reply.text}, 'pending', now_ms())`;
}

export async function readReply(reads: Reads, id: string): Promise<(Reply & { readonly state: OutboxState }) | undefined> {
  const row = await reads.get<OutboxRow>`select id, run_id, address, body, state from outbox where id = ${id}`;
  return row && { id: row.id, runId: row.run_id, address: JSON.parse(row.address), text: row.body, state: row.state };
}

/** Answers whether it was still pending. */
export async function settleReply(tx: Tx, id: string, state: "sent" | "unknown"): Promise<boolean> {
  return (await tx.run`update outbox set state = ${state}, settled_at = now_ms() where id = ${id} and state = 'pending'`) > 0;
}

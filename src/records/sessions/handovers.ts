import type { Reads, Tx } from "../../store/engine.ts";

/** A conversation that somebody gave to another agent than the rules name. Its key is the session key that the rules give. */
export interface Handover {
  readonly agent: string;
  readonly by: string;
  readonly at: number;
}

export async function handOver(tx: Tx, conversationKey: string, agent: string, by: string): Promise<void> {
  await tx.run`insert into handovers (conversation_key, agent, by_whom, at) values (${conversationKey}, ${agent}, ${by}, now_ms())
    on conflict (conversation_key) do update set agent = excluded.agent, by_whom = excluded.by_whom, at = excluded.at`;
}

/** Answers whether it was handed over. */
export async function takeBack(tx: Tx, conversationKey: string): Promise<boolean> {
  return (await tx.run`delete from handovers where conversation_key = ${conversationKey}`) > 0;
}

export async function readHandover(reads: Reads, conversationKey: string): Promise<Handover | undefined> {
  const row = await reads.get<{ agent: string; by_whom: string; at: number }>`select agent, by_whom, at from handovers
    where conversation_key = ${conversationKey}`;
  return row && { agent: row.agent, by: row.by_whom, at: row.at };
}

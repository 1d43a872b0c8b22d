import type { Reads, Tx } from "../../store/engine.ts";
import type { SummaryPlace } from "./contexts.ts";

/** Where an epoch of a conversation was summarised last, and whether it is to be again. */
export interface SummaryState {
  readonly summary: SummaryPlace | null;
  /** Somebody wants a summary before the next turn. */
  readonly asked: boolean;
}

const NONE: SummaryState = { summary: null, asked: false };

export async function readSummaryState(reads: Reads, sessionKey: string, epoch: number): Promise<SummaryState> {
  const row = await reads.get<{ run_id: string | null; step: number | null; asked: number }>`select run_id, step, asked
    from session_summaries where session_key = ${sessionKey} and epoch = ${epoch}`;
  if (!row) return NONE;
  const summary = row.run_id === null || row.step === null ? null : { run: row.run_id, step: row.step };
  return { summary, asked: row.asked === 1 };
}

/** Turns of this epoch begin with it from now on. */
export async function keepSummary(tx: Tx, sessionKey: string, epoch: number, { run, step }: SummaryPlace): Promise<void> {
  await tx.run`insert into session_summaries (session_key, epoch, run_id, step, asked, at)
    values (${sessionKey}, ${epoch}, ${run}, ${step}, 0, now_ms())
    on conflict (session_key, epoch) do update set run_id = excluded.run_id, step = excluded.step, asked = 0, at = excluded.at`;
}

export async function askForSummary(tx: Tx, sessionKey: string, epoch: number): Promise<void> {
  await tx.run`insert into session_summaries (session_key, epoch, run_id, step, asked, at)
    values (${sessionKey}, ${epoch}, null, null, 1, now_ms())
    on conflict (session_key, epoch) do update set asked = 1`;
}

/** There was nothing to summarise. */
export async function forgetAskedSummary(tx: Tx, sessionKey: string, epoch: number): Promise<void> {
  await tx.run`update session_summaries set asked = 0 where session_key = ${sessionKey} and epoch = ${epoch}`;
}

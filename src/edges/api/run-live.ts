import type { LedgerEvent } from "../../contract/events.ts";
import { isOver } from "../../contract/wire.ts";
import type { Live, LiveChunk } from "../../kernel/live.ts";
import { readRun } from "../../records/sessions/runs.ts";
import type { Store } from "../../store/store.ts";
import type { Send } from "./route.ts";

/**
 * A run as it happens: its text where the turn runs on this node, and in any case the finished run. The end is taken from the
 * ledger, so it comes also when another node, or a later daemon, finishes the turn.
 */
export async function streamRun(store: Store, live: Live, runId: string, send: Send, signal: AbortSignal): Promise<void> {
  const from = await store.ledger.horizon();
  const ended = new AbortController();
  const chunks = live.listen(runId, AbortSignal.any([signal, ended.signal]));
  const before = await readRun(store.read, runId);
  if (before && !isOver(before.status)) {
    const sending = sendChunks(chunks, send);
    for await (const event of store.follow(from, signal)) if (ends(event, runId)) break;
    ended.abort();
    await sending;
  }
  ended.abort();
  if (signal.aborted) return;
  const run = await readRun(store.read, runId);
  await send({ event: "done", data: run });
}

async function sendChunks(chunks: AsyncIterable<LiveChunk>, send: Send): Promise<void> {
  for await (const { kind, ...data } of chunks) await send({ event: kind, data });
}

function ends(event: LedgerEvent, runId: string): boolean {
  return (event.type === "turn.completed" || event.type === "turn.failed") && event.subject[0] === "run" && event.subject[1] === runId;
}

import type { LedgerEvent } from "../../contract/events.ts";
import { isOver, type Run } from "../../contract/wire.ts";
import type { Live, LiveChunk } from "../../kernel/live.ts";
import { readRun } from "../../records/sessions/runs.ts";
import type { Store } from "../../store/store.ts";
import type { Send } from "./route.ts";
import { withUsage } from "./visible-run.ts";

/** A run as it happens; the last event is the finished run. */
export async function streamRun(store: Store, live: Live, runId: string, send: Send, signal: AbortSignal): Promise<void> {
  const run = await followRun(store, live, runId, ({ kind, ...data }) => send({ event: kind, data }), signal);
  if (run) await send({ event: "done", data: await withUsage(store, run) });
}

/**
 * What is seen of a run where its turn runs on this node (`live` null: nobody looks), and in any case the finished run; undefined when
 * the signal aborts before. The end is taken from the ledger, so it comes also when another node, or a later daemon, finishes the turn.
 */
export async function followRun(
  store: Store,
  live: Live | null,
  runId: string,
  see: (chunk: LiveChunk) => Promise<void>,
  signal: AbortSignal,
): Promise<Run | undefined> {
  const from = await store.ledger.horizon();
  const ended = new AbortController();
  const chunks = live?.listen(runId, AbortSignal.any([signal, ended.signal]));
  const before = await readRun(store.read, runId);
  if (before && !isOver(before.status)) {
    const seeing = chunks && seeAll(chunks, see);
    // Whoever stops looking is told of it below; until then nobody waits for it.
    seeing?.catch(() => {});
    for await (const event of store.follow(from, signal)) if (ends(event, runId)) break;
    ended.abort();
    await seeing;
  }
  ended.abort();
  return signal.aborted ? undefined : readRun(store.read, runId);
}

async function seeAll(chunks: AsyncIterable<LiveChunk>, see: (chunk: LiveChunk) => Promise<void>): Promise<void> {
  for await (const chunk of chunks) await see(chunk);
}

function ends(event: LedgerEvent, runId: string): boolean {
  return (event.type === "turn.completed" || event.type === "turn.failed") && event.subject[0] === "run" && event.subject[1] === runId;
}

import { asFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { SentEvent, StreamBody } from "./route.ts";

/** Proxies and clients give up on a connection that says nothing. */
const KEEP_ALIVE_MS = 15_000;
/** A reader that takes nothing for so long is gone, whatever its connection says. */
const STALLED_MS = 60_000;

export const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

/**
 * Server-sent events until the body is done, the client leaves, or the signal aborts. What is not read is not produced: `send` waits
 * for the reader. `ended` is called once, however it ends.
 */
export function eventStream(signal: AbortSignal, log: Log, ended: () => void, body: StreamBody): Response {
  const left = new AbortController();
  const over = AbortSignal.any([signal, left.signal]);
  const waiting: (() => void)[] = [];
  const room = (): void => {
    for (const resume of waiting.splice(0)) resume();
  };
  let takenAt = performance.now();
  const bytes = new TextEncoder();
  const readable = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const roomAgain = (): Promise<void> => {
          if (over.aborted || (controller.desiredSize ?? 0) > 0) return Promise.resolve();
          return new Promise((resolve) => waiting.push(resolve));
        };
        const write = (text: string): void => {
          if (!over.aborted) controller.enqueue(bytes.encode(text));
        };
        const keepAlive = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) return write(":\n\n");
          if (performance.now() - takenAt > STALLED_MS) left.abort();
        }, KEEP_ALIVE_MS);
        const end = (): void => {
          clearInterval(keepAlive);
          room();
          ended();
          try {
            controller.close();
          } catch {
            // The client was quicker.
          }
        };
        // An abort ends the answer at once, also while the body waits for something.
        over.addEventListener("abort", end, { once: true });
        // Sends the headers: the client knows that it is listening.
        write(":\n\n");
        body(async (event) => {
          await roomAgain();
          write(inWords(event));
        }, over)
          .catch((error: unknown) => {
            if (!over.aborted) log.warn("an event stream broke off", { error: asFailure(error).message });
          })
          .finally(() => left.abort());
      },
      pull() {
        takenAt = performance.now();
        room();
      },
      cancel() {
        left.abort();
      },
    },
    { highWaterMark: 16 },
  );
  return new Response(readable, { headers: STREAM_HEADERS });
}

function inWords({ id, event, ...sent }: SentEvent): string {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  return `${head}data: ${"text" in sent ? sent.text : JSON.stringify(sent.data)}\n\n`;
}

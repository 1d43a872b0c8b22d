import { asFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { SentEvent, StreamBody } from "./route.ts";

/** Proxies and clients give up on a connection that says nothing. */
const KEEP_ALIVE_MS = 15_000;
/** A reader that takes nothing for so long is gone, whatever its connection says. */
const STALLED_MS = 60_000;
/** Events that are written at once, at most. */
const TOGETHER = 32;
const TOGETHER_CHARACTERS = 32_768;

export const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

/**
 * Server-sent events until the body is done, the client leaves, or the signal aborts. What is not read is not produced: `send` waits
 * for the reader. What is sent in one turn of the event loop goes out together: each writing wakes its reader, and costs more than the
 * event. `ended` is called once, however it ends.
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
        let gathered: string[] = [];
        let characters = 0;
        const flush = (): void => {
          const texts = gathered;
          gathered = [];
          characters = 0;
          if (texts.length === 0 || isClosed) return;
          controller.enqueue(bytes.encode(texts.length === 1 ? texts[0] : texts.join("")));
          room();
        };
        const hasRoom = (): boolean => (controller.desiredSize ?? 0) > 0 && gathered.length < TOGETHER && characters < TOGETHER_CHARACTERS;
        const roomAgain = async (): Promise<void> => {
          while (!over.aborted && !hasRoom()) await new Promise<void>((resolve) => waiting.push(resolve));
        };
        const write = (text: string): void => {
          if (over.aborted) return;
          characters += text.length;
          if (gathered.push(text) === 1) setImmediate(flush);
        };
        const keepAlive = setInterval(() => {
          if (hasRoom()) return write(":\n\n");
          if (performance.now() - takenAt > STALLED_MS) left.abort();
        }, KEEP_ALIVE_MS);
        let isClosed = false;
        const end = (): void => {
          clearInterval(keepAlive);
          try {
            flush();
            controller.close();
          } catch {
            // The client was quicker.
          }
          isClosed = true;
          room();
          ended();
        };
        // It was over before it began.
        if (over.aborted) return end();
        // An abort ends the answer at once, also while the body waits for something.
        over.addEventListener("abort", end, { once: true });
        // Sends the headers: the client knows that it is listening.
        controller.enqueue(bytes.encode(":\n\n"));
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
    { highWaterMark: 4 },
  );
  return new Response(readable, { headers: STREAM_HEADERS });
}

function inWords({ id, event, ...sent }: SentEvent): string {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  return `${head}data: ${"text" in sent ? sent.text : JSON.stringify(sent.data)}\n\n`;
}

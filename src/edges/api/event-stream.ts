import type { Context } from "hono";
import { type SSEStreamingApi, streamSSE } from "hono/streaming";
import { asFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";

/** Proxies and clients give up on a connection that says nothing. */
const KEEP_ALIVE_MS = 15_000;

/** Server-sent events until the body is done, the client leaves, or the daemon stops. */
export function eventStream(
  context: Context,
  stopping: AbortSignal,
  log: Log,
  body: (stream: SSEStreamingApi, signal: AbortSignal) => Promise<void>,
): Response {
  const left = new AbortController();
  const signal = AbortSignal.any([stopping, left.signal]);
  context.header("X-Accel-Buffering", "no");
  return streamSSE(context, async (stream) => {
    stream.onAbort(() => left.abort());
    const keepAlive = setInterval(() => void stream.write(":\n\n"), KEEP_ALIVE_MS);
    try {
      // Sends the headers: the client knows that it is listening.
      await stream.write(":\n\n");
      await body(stream, signal);
    } catch (error) {
      log.warn("an event stream broke off", { error: asFailure(error).message });
    } finally {
      clearInterval(keepAlive);
      left.abort();
    }
  });
}

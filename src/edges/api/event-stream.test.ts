import { expect, test } from "vitest";
import { eventStream } from "./event-stream.ts";
import type { StreamBody } from "./route.ts";

const log = { info: () => {}, warn: () => {}, error: () => {} };

function opened(body: StreamBody) {
  const stop = new AbortController();
  let ends = 0;
  const response = eventStream(stop.signal, log, () => ends++, body);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const next = async (): Promise<string | undefined> => {
    const { value } = await reader.read();
    return value === undefined ? undefined : new TextDecoder().decode(value);
  };
  return { stop, reader, next, ends: () => ends };
}

test("events have number, name and JSON on one line", async () => {
  const { next, ends } = opened(async (send) => send({ id: "7", event: "word", data: { text: "a\nb" } }));
  expect([await next(), await next(), await next()]).toEqual([":\n\n", 'id: 7\nevent: word\ndata: {"text":"a\\nb"}\n\n', undefined]);
  expect(ends()).toBe(1);
});

test("a reader that does not read stops the sender", async () => {
  let sent = 0;
  const { next, reader } = opened(async (send, signal) => {
    for (; !signal.aborted && sent < 1_000; sent++) await send({ event: "e", data: sent });
  });
  await next();
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toBeLessThan(20);
  for (let index = 0; index < 100; index++) await next();
  expect(sent).toBeGreaterThanOrEqual(100);
  expect(sent).toBeLessThan(120);
  await reader.cancel();
});

test.each(["aborted", "left by the client"])("once %s, it ends though its body waits for ever", async (how) => {
  let told: AbortSignal | undefined;
  const { stop, reader, next, ends } = opened((_send, signal) => {
    told = signal;
    return new Promise(() => {});
  });
  await next();
  if (how === "aborted") {
    stop.abort();
    expect(await next()).toBeUndefined();
  } else await reader.cancel();
  expect([told?.aborted, ends()]).toEqual([true, 1]);
});

test("a sender that waits for room is let go when the client leaves", async () => {
  let done = false;
  const { next, reader } = opened(async (send, signal) => {
    while (!signal.aborted) await send({ event: "e", data: 0 });
    done = true;
  });
  await next();
  await reader.cancel();
  await new Promise((resolve) => setImmediate(resolve));
  expect(done).toBe(true);
});

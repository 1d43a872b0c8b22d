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

test("what is sent at once goes out at once, in its order, also the last of it", async () => {
  const { next } = opened(async (send) => {
    for (const data of [1, 2]) await send({ event: "e", data });
    await new Promise((resolve) => setTimeout(resolve, 5));
    for (const data of [3, 4]) await send({ event: "e", data });
  });
  const event = (data: number): string => `event: e\ndata: ${data}\n\n`;
  expect([await next(), await next(), await next(), await next()]).toEqual([":\n\n", event(1) + event(2), event(3) + event(4), undefined]);
});

test("a reader that does not read stops the sender", async () => {
  let sent = 0;
  const { next, reader } = opened(async (send, signal) => {
    for (; !signal.aborted && sent < 10_000; sent++) await send({ event: "e", data: sent });
  });
  await next();
  const settled = async (): Promise<number> => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    return sent;
  };
  const before = await settled();
  expect(before).toBeLessThan(200);
  expect(await settled()).toBe(before);
  let read = 0;
  while (read < 1_000) read += (await next())?.split("\n\n").length ?? 0;
  expect(await settled()).toBeGreaterThanOrEqual(before + 500);
  expect(sent).toBeLessThan(read + 200);
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

test("one that is over before it begins asks nobody for events, and says that it has ended", async () => {
  let asked = false;
  let ends = 0;
  const body: StreamBody = async () => {
    asked = true;
  };
  const response = eventStream(AbortSignal.abort(), log, () => ends++, body);
  expect([await response.text(), asked, ends]).toEqual(["", false, 1]);
});

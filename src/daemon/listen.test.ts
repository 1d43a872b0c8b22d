import { hostname } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { listen, wholeResponse } from "./listen.ts";

test("whole answers are written with their length, and the globals of the process stay what they were", async () => {
  const { Request, Response } = globalThis;
  const Whole = wholeResponse();
  expect([globalThis.Request === Request, globalThis.Response === Response, Whole === Response]).toEqual([true, true, false]);
  const text = JSON.stringify({ said: "Grüße" });
  const server = await listen(
    async () => new Whole(text, { status: 202, headers: { "content-type": "application/json", "cache-control": "no-store" } }),
    "127.0.0.1",
    0,
  );
  try {
    const answer = await fetch(server.url);
    expect([answer.status, await answer.json()]).toEqual([202, { said: "Grüße" }]);
    const head = ["content-type", "content-length", "cache-control", "transfer-encoding"].map((name) => answer.headers.get(name));
    expect(head).toEqual(["application/json", String(Buffer.byteLength(text)), "no-store", null]);
  } finally {
    await server.close(1_000);
  }
});

test("a stream is sent as it comes, waits for its reader, and is cancelled when that leaves", async () => {
  let produced = 0;
  let cancelled = false;
  const body = () =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new TextEncoder().encode(`data: ${produced++} ${"x".repeat(10_000)}\n\n`));
      },
      cancel() {
        cancelled = true;
      },
    });
  const server = await listen(async () => new Response(body(), { headers: { "content-type": "text/event-stream" } }), "127.0.0.1", 0);
  try {
    const leave = new AbortController();
    const answer = await fetch(server.url, { signal: leave.signal });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^data: 0 x/);
    let before = -1;
    // Until the buffers between us are full.
    while (before !== produced) {
      before = produced;
      for (let turn = 0; turn < 50; turn++) await nextTurn();
    }
    expect(produced).toBeLessThan(5_000);
    for (let read = 0; read < 1_000_000; read += (await reader.read()).value?.length ?? 0);
    for (let turn = 0; turn < 50; turn++) await nextTurn();
    expect(produced).toBeGreaterThan(before);
    leave.abort();
    await expect.poll(() => cancelled).toBe(true);
  } finally {
    await server.close(1_000);
  }
});

test("a stream that breaks off does not look as if it had ended", async () => {
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("data: 1\n\n")),
    pull: (controller) => controller.error(new Error("gone")),
  });
  const server = await listen(async () => new Response(body, { headers: { "content-type": "text/event-stream" } }), "127.0.0.1", 0);
  try {
    const answer = await fetch(server.url);
    await expect(answer.text()).rejects.toThrow();
  } finally {
    await server.close(1_000);
  }
});

test("a stream whose reader left before there was anything to send is cancelled", async () => {
  const asked = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({ cancel: () => cancelled.resolve() }, { highWaterMark: 0 });
  const server = await listen(
    async (request) => {
      request.signal.addEventListener("abort", () => left.resolve());
      asked.resolve();
      await left.promise;
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
    "127.0.0.1",
    0,
  );
  try {
    const leave = new AbortController();
    const answer = fetch(server.url, { signal: leave.signal });
    await asked.promise;
    leave.abort();
    await expect(answer).rejects.toThrow();
    await cancelled.promise;
  } finally {
    await server.close(1_000);
  }
});

test("whoever listens everywhere is reached here by the loopback, and told to others by the name of the machine", async () => {
  for (const [host, here, elsewhere] of [
    ["0.0.0.0", "127.0.0.1", hostname()],
    ["127.0.0.1", "127.0.0.1", "127.0.0.1"],
  ] as const) {
    const server = await listen(async () => new Response("ok"), host, 0);
    try {
      const { port } = new URL(server.url);
      expect([server.url, server.announced]).toEqual([`http://${here}:${port}`, `http://${elsewhere}:${port}`]);
    } finally {
      await server.close(1_000);
    }
  }
});

import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { cutOff } from "./cut-off.ts";

/** A stream of one piece that goes on as it is told, and how often its end was told. */
function answer(after: "ends" | "breaks" | "waits") {
  const stopping = new AbortController();
  let ended = 0;
  let pieces = 0;
  let cancelled = false;
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (pieces++ === 0) return controller.enqueue(Buffer.from("one"));
      if (after === "ends") return controller.close();
      if (after === "breaks") throw new Error("broken");
      return new Promise(() => {});
    },
    cancel() {
      cancelled = true;
    },
  });
  const response = cutOff(new Response(source), stopping.signal, () => ended++);
  const seen = () => ({ ended, cancelled, listeners: getEventListeners(stopping.signal, "abort").length });
  return { response, stopping, seen };
}

test.each(["ends", "breaks"] as const)("a stream that %s by itself is told once and forgotten by the signal", async (how) => {
  const { response, stopping, seen } = answer(how);
  const text = await response.text().catch(() => "broken");
  expect(text).toBe(how === "ends" ? "one" : "broken");
  expect(seen()).toMatchObject({ ended: 1, listeners: 0 });
  stopping.abort();
  expect(seen()).toMatchObject({ ended: 1 });
});

test("a stream whose reader leaves is told once and forgotten by the signal", async () => {
  const { response, stopping, seen } = answer("waits");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  void reader.read().catch(() => {});
  await reader.cancel();
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen()).toEqual({ ended: 1, cancelled: true, listeners: 0 });
  stopping.abort();
  expect(seen().ended).toBe(1);
});

test("a stream is cut off by the signal, also while nothing comes", async () => {
  const { response, stopping, seen } = answer("waits");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  const next = reader.read();
  stopping.abort();
  expect((await next).done).toBe(true);
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen()).toEqual({ ended: 1, cancelled: true, listeners: 0 });
});

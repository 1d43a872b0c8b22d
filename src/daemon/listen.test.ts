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

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { ERRORS, type ErrorCode } from "../contract/errors.ts";
import { ApiClient } from "./api-client.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A daemon that breaks off after two events, and answers what it is asked to go on after. */
async function breaking(last: number): Promise<{ client: ApiClient; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const after = Number(request.headers["last-event-id"]);
    asked.push(String(after));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let seq = after + 1; seq <= Math.min(after + 2, last); seq++) response.write(`id: ${seq}\nevent: e\ndata: ${seq}\n\n`);
    response.write("id: 99\nevent: cut");
    setTimeout(() => response.destroy(), 20);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  return { client: new ApiClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, "t"), asked };
}

test("a stream that breaks goes on after the last whole event, without gap or repetition", async () => {
  const { client, asked } = await breaking(5);
  const stop = new AbortController();
  const seen: string[] = [];
  for await (const { data } of client.watch("/api/events", 0, stop.signal)) {
    seen.push(data);
    if (seen.length === 5) stop.abort();
  }
  expect(seen).toEqual(["1", "2", "3", "4", "5"]);
  expect(asked).toEqual(["0", "2", "4"]);
});

test("a refusal ends it, unless it says to come again later", async () => {
  const refusals: ErrorCode[] = ["store.unavailable", "request.busy", "request.forbidden"];
  const server = createServer((_request, response) => {
    const code = refusals.shift() as ErrorCode;
    const { status, hint, retry } = ERRORS[code];
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { code, message: "no", hint, retry, details: {} } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => server.close());
  const client = new ApiClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, "t");
  await expect(client.watch("/api/events", 0, new AbortController().signal).next()).rejects.toMatchObject({ code: "request.forbidden" });
  expect(refusals).toEqual([]);
});

import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";

let home: Home;
let daemon: RunningDaemon;

beforeAll(async () => {
  home = new Home();
  daemon = await home.start();
});
afterAll(() => home.remove());

/** As a browser would send it; `fetch` lets nobody choose these headers. */
function ask(path: string, headers: Record<string, string>, method = "GET"): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(daemon.url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers: { authorization: `Bearer ${daemon.token}`, ...headers } }, (answer) => {
      let body = "";
      answer.on("data", (data) => {
        body += data;
        // A stream that was opened has no end; that it was opened is all there is to see.
        if (answer.headers["content-type"] === "text/event-stream") answer.destroy();
      });
      answer.on("close", () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    sent.on("error", reject);
    sent.end(method === "POST" ? "{}" : undefined);
  });
}

const paths = [
  ["GET", "/api/events"],
  ["GET", "/api/runs/x"],
  ["POST", "/api/messages"],
  ["POST", "/api/tokens"],
  ["GET", "/healthz"],
  ["GET", "/metrics"],
] as const;

test.each(paths)("%s %s is refused to pages of other sites, though they are on this machine and have a token", async (method, path) => {
  const own = new URL(daemon.url).host;
  for (const origin of ["https://evil.example", "null", "http://localhost:1", `https://${own}.evil.example`, "file://", "", own, "*"]) {
    const { status, body } = await ask(path, { origin }, method);
    expect([origin, status, JSON.parse(body).error.code]).toEqual([origin, 403, "request.forbidden"]);
  }
});

test.each(paths)("%s %s is refused under a name that is not ours", async (method, path) => {
  const { port } = new URL(daemon.url);
  for (const host of [`evil.example:${port}`, "evil.example", `127.0.0.1.evil.example:${port}`, "169.254.169.254", "0x7f.1.evil.example"]) {
    const { status, body } = await ask(path, { host }, method);
    expect([host, status, JSON.parse(body).error.code]).toEqual([host, 403, "request.forbidden"]);
  }
});

test("our own pages may open the stream", async () => {
  expect((await ask("/api/events", { origin: daemon.url })).status).toBe(200);
});

test("no answer lets another site read it", async () => {
  const answer = await daemon.fetch("/healthz");
  for (const [name] of answer.headers) expect(name).not.toMatch(/^access-control-/);
  expect((await daemon.fetch("/api/messages", { method: "OPTIONS" })).status).toBe(404);
});

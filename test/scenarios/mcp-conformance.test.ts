import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "./guildhall.ts";

const SUITE = new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url).pathname;
const DOCS = new URL("../../docs/mcp.md", import.meta.url).pathname;

/** The suite asks for tools and resources of its own making; these of ours are asked in the same way. */
const OURS: readonly (readonly [string, string])[] = [
  ["test_simple_text", "whoami"],
  ["test_error_handling", "claim"],
  ["test://static-text", "guildhall://claims"],
  ["test://template/123/data", "guildhall://pools/commons/item-123"],
  ["test://watched-resource", "guildhall://mail"],
];

const PASSED = [
  "server-initialize",
  "ping",
  "tools-list",
  "tools-call-simple-text",
  "tools-call-error",
  "server-sse-multiple-streams",
  "resources-list",
  "resources-read-text",
  "resources-templates-read",
  "resources-subscribe",
  "resources-unsubscribe",
  "dns-rebinding-protection",
];

let home: Home;
let daemon: RunningDaemon;
let proxy: Server;

beforeAll(async () => {
  home = new Home();
  daemon = await home.start();
  const entry = await daemon.fetch("/api/pools/commons/entries/item-123", { method: "PUT", body: JSON.stringify({ value: "item 123" }) });
  expect(entry.status).toBe(201);
  proxy = createServer((incoming, outgoing) => {
    const parts: Buffer[] = [];
    incoming.on("data", (part: Buffer) => parts.push(part));
    incoming.on("end", () => {
      const body = OURS.reduce((text, [theirs, ours]) => text.replaceAll(theirs, ours), Buffer.concat(parts).toString());
      const { "content-length": _length, ...headers } = incoming.headers;
      const sent = request(`${daemon.url}${incoming.url}`, {
        method: incoming.method,
        headers: { ...headers, authorization: `Bearer ${daemon.token}` },
      });
      sent.on("response", (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      });
      sent.on("error", () => outgoing.destroy());
      outgoing.on("close", () => sent.destroy());
      sent.end(body === "" ? undefined : body);
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  proxy.closeAllConnections();
  proxy.close();
  await home.remove();
});

/** The suite knows no tokens, so a proxy adds one; Host and Origin pass through it as they are. */
test("the official conformance suite passes where it asks for what we have, and the docs say so", { timeout: 60_000 }, async () => {
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`;
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, [SUITE, "server", "--url", url, "--suite", "all"], (_error, stdout) => resolve(stdout));
  });
  const results = [...output.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm)];
  expect(results).toHaveLength(32);
  expect(results.filter(([, , passed, failed]) => Number(passed) > 0 && failed === "0").map(([, name]) => name)).toEqual(PASSED);
  const docs = readFileSync(DOCS, "utf8");
  for (const [, name = ""] of results) expect(docs, name).toContain(`\`${name}\``);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { type Caller, OPERATOR } from "../../kernel/caller.ts";
import { systemClock } from "../../kernel/clock.ts";
import { idSource } from "../../kernel/ids.ts";
import { systemRandom } from "../../kernel/random.ts";
import { Access } from "../../records/access/access.ts";
import { Guests } from "../../records/access/guests.ts";
import { AgentRegistry } from "../../records/agents/registry.ts";
import { revisionWithoutFile } from "../../records/agents/revision.ts";
import { Agreements } from "../../records/agreements/agreements.ts";
import { Claims } from "../../records/claims/claims.ts";
import { Mailbox } from "../../records/mailbox/mailbox.ts";
import { Pools } from "../../records/pools/pools.ts";
import { KnownWorkflows } from "../../records/workflows/known-workflows.ts";
import { openStore } from "../../store/store.ts";
import { type McpAnswer, mcpEndpoint } from "./mcp-endpoint.ts";
import type { McpParts } from "./tool.ts";

const folder = mkdtempSync(join(tmpdir(), "guildhall-mcp-"));
const ALICE: Caller = { ...OPERATOR, kind: "guest", name: "alice" };
const BOB: Caller = { ...ALICE, name: "bob" };
let parts: McpParts;

beforeAll(async () => {
  const store = await openStore(`sqlite:${join(folder, "state.db")}`);
  const newId = idSource(systemClock, systemRandom);
  const agents = new AgentRegistry(revisionWithoutFile(configSchema.parse({})));
  const pools = new Pools(store);
  await pools.reconcile({ commons: { readers: ["*"], writers: ["*"] }, private: { readers: ["bob"], writers: ["bob"] } });
  parts = {
    store,
    pools,
    agreements: new Agreements(store),
    claims: new Claims(store, "n"),
    mailbox: new Mailbox(store, newId),
    guests: new Guests(store, new Access(store, agents, newId, systemRandom), agents),
    agents,
    newId,
    workflows: new KnownWorkflows(),
    delivers: () => false,
    running: { stop: () => {} } as unknown as McpParts["running"],
    log: { info: () => {}, warn: () => {}, error: () => {} },
    version: "0.0.0",
  };
});
afterAll(async () => {
  await parts.store.close();
  rmSync(folder, { recursive: true, force: true });
});

const HEADERS = { accept: "application/json, text/event-stream", "content-type": "application/json" };
const clientInfo = { name: "t", version: "1" };
const BEGINNING = { method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } };

function post(answer: McpAnswer, caller: Caller, message: object, session?: string): Promise<Response> {
  const headers = session === undefined ? HEADERS : { ...HEADERS, "mcp-session-id": session };
  return answer(
    new Request("http://localhost/mcp", { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }) }),
    caller,
  );
}

async function open(answer: McpAnswer, caller = ALICE): Promise<string> {
  return (await post(answer, caller, BEGINNING)).headers.get("mcp-session-id") as string;
}

function stream(answer: McpAnswer, session: string, signal: AbortSignal, caller = ALICE): Promise<Response> {
  return answer(new Request("http://localhost/mcp", { headers: { ...HEADERS, "mcp-session-id": session }, signal }), caller);
}

async function called(answer: McpAnswer, caller: Caller, session: string, name: string, args: object): Promise<string> {
  return (await post(answer, caller, { method: "tools/call", params: { name, arguments: args } }, session)).text();
}

test("the session that was used longest ago makes room, one that is listened to does not", async () => {
  const answer = mcpEndpoint(parts, { perCaller: 2 });
  const stop = new AbortController();
  const [first, second] = [await open(answer), await open(answer)];
  await stream(answer, first, stop.signal);
  const third = await open(answer);
  const statuses = await Promise.all(
    [first, second, third].map(async (one) => (await post(answer, ALICE, { method: "ping" }, one)).status),
  );
  expect(statuses).toEqual([200, 404, 200]);
  await stream(answer, third, stop.signal);
  await expect(open(answer)).rejects.toMatchObject({ code: "request.busy" });
  expect(await open(answer, BOB)).toEqual(expect.any(String));
  stop.abort();
});

test("what is no beginning opens no session", async () => {
  const answer = mcpEndpoint(parts, { perCaller: 1 });
  for (let tries = 0; tries < 3; tries++) expect((await post(answer, ALICE, { method: "tools/list" })).status).toBe(400);
  expect(await open(answer)).toEqual(expect.any(String));
});

test("a reader that sleeps is told of each change once, when it wakes, and fills no memory", async () => {
  const answer = mcpEndpoint(parts);
  const stop = new AbortController();
  const session = await open(answer);
  for (let index = 0; index < 150; index++)
    await post(answer, ALICE, { method: "resources/subscribe", params: { uri: `guildhall://pools/commons/k${index}` } }, session);
  const response = await stream(answer, session, stop.signal);
  for (let round = 0; round < 4; round++) {
    await parts.pools.write(
      BOB,
      "commons",
      Array.from({ length: 100 }, (_, index) => ({ key: `k${index + 50}`, value: round, ...(round === 0 ? {} : { ifVersion: round }) })),
    );
    await sleep(60);
  }
  let text = "";
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const reading = (async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += Buffer.from(part.value).toString();
  })();
  await expect.poll(() => text, { timeout: 15_000 }).toContain("k149");
  await sleep(200);
  // A hundred were on their way; of all that came after, each key once.
  expect(text.match(/resources\/updated/g)?.length).toBeLessThanOrEqual(300);
  stop.abort();
  await reader.cancel();
  await reading;
});

test("nobody is told of, shown or lent what is not for him, and the answers do not tell whether it is there", async () => {
  const answer = mcpEndpoint(parts);
  const [alice, bob] = [await open(answer), await open(answer, BOB)];
  expect(await called(answer, BOB, bob, "context_write", { pool: "private", key: "x", value: "canary" })).toContain("version 1");
  const read = (pool: string) => called(answer, ALICE, alice, "context_read", { pool, key: "x" });
  const [hidden, absent] = [await read("private"), await read("nothing")];
  expect(hidden).toContain("request.not_found");
  expect(hidden).toBe(absent.replaceAll("nothing", "private"));
  const resource = async (pool: string, method: string): Promise<string> =>
    (await post(answer, ALICE, { method, params: { uri: `guildhall://pools/${pool}/x` } }, alice)).text();
  for (const method of ["resources/read", "resources/subscribe"])
    expect(await resource("private", method)).toBe((await resource("nothing", method)).replaceAll("nothing", "private"));
  const listed = await (await post(answer, ALICE, { method: "resources/list" }, alice)).text();
  expect(listed).not.toContain("private");
});

test("a change is told under the name that the client has given, encoded or not", async () => {
  const answer = mcpEndpoint(parts);
  const [session, stop] = [await open(answer), new AbortController()];
  const uri = "guildhall://pools/commons/api/a b";
  await post(answer, ALICE, { method: "resources/subscribe", params: { uri } }, session);
  const response = await stream(answer, session, stop.signal);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await parts.pools.write(BOB, "commons", [{ key: "api/a b", value: 1 }]);
  const { value } = await reader.read();
  expect(Buffer.from(value as Uint8Array).toString()).toContain(JSON.stringify(uri));
  stop.abort();
  await reader.cancel();
});

test("resources come in parts, however many pools they are spread over", async () => {
  const answer = mcpEndpoint(parts);
  const session = await open(answer);
  const pools = Array.from({ length: 6 }, (_, index) => `part${index}`);
  for (const name of pools) {
    const definition = { readers: ["*"], writers: ["*"] };
    await parts.store.transact("make pool", (tx) => parts.pools.createIn(tx, "operator", name, definition), "locked");
    await parts.pools.write(
      BOB,
      name,
      Array.from({ length: 90 }, (_, index) => ({ key: `k${index}`, value: 1 })),
    );
  }
  const uris: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const text = await (await post(answer, ALICE, { method: "resources/list", params: cursor ? { cursor } : {} }, session)).text();
    const { result } = JSON.parse(/\{.*\}/s.exec(text)?.[0] ?? "") as { result: { resources: { uri: string }[]; nextCursor?: string } };
    expect(result.resources.length).toBeLessThan(400);
    uris.push(...result.resources.map((one) => one.uri));
    if (result.nextCursor === undefined) break;
    cursor = result.nextCursor;
  }
  expect(new Set(uris).size).toBe(uris.length);
  expect(uris.filter((uri) => uri.startsWith("guildhall://pools/part"))).toHaveLength(540);
});

test("one's own claim is found among any number of others", async () => {
  const answer = mcpEndpoint(parts);
  const session = await open(answer);
  const claims = new Claims(parts.store, "m", { perHolder: 5_000 });
  for (let index = 0; index < 1_100; index++)
    await claims.take(BOB, { resource: `crowd/a${index}`, ttl_ms: 60_000, mode: "exclusive", wait_ms: 0 });
  expect(await called(answer, ALICE, session, "claim", { resource: "crowd/z*" })).toContain("you hold");
  expect(await called(answer, ALICE, session, "claim_renew", { resource: "crowd/z*" })).toContain("you hold");
  expect(await called(answer, ALICE, session, "claim_release", { resource: "crowd/z*" })).toContain("released: crowd/z*");
});

test("with its session a stream's follower ends", async () => {
  let following = 0;
  const store = Object.create(parts.store, {
    follow: {
      value: async function* (after: number, signal: AbortSignal) {
        following++;
        try {
          yield* parts.store.follow(after, signal);
        } finally {
          following--;
        }
      },
    },
  }) as McpParts["store"];
  const counted = { ...parts, store: Object.assign(store, { ledger: parts.store.ledger }) };
  const answer = mcpEndpoint(counted);
  const session = await open(answer);
  const response = await stream(answer, session, new AbortController().signal);
  const ended = response.text();
  await expect.poll(() => following).toBe(1);
  const headers = { ...HEADERS, "mcp-session-id": session };
  await answer(new Request("http://localhost/mcp", { method: "DELETE", headers }), ALICE);
  await ended;
  await expect.poll(() => following).toBe(0);
});

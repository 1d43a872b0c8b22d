import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Hono } from "hono";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newMail } from "../../contract/mail.ts";
import type { PoolChange } from "../../contract/pools.ts";
import { OPERATOR } from "../../kernel/caller.ts";
import { systemClock } from "../../kernel/clock.ts";
import { idSource } from "../../kernel/ids.ts";
import { systemRandom } from "../../kernel/random.ts";
import { Access } from "../../records/access/access.ts";
import { Claims } from "../../records/claims/claims.ts";
import { Mailbox } from "../../records/mailbox/mailbox.ts";
import { Pools } from "../../records/pools/pools.ts";
import { openStore, type Store } from "../../store/store.ts";
import { createApp } from "./app.ts";
import { operatorOr } from "./credential.ts";
import { poolsRoutes } from "./pools-routes.ts";

const folder = mkdtempSync(join(tmpdir(), "guildhall-pools-"));
const newId = idSource(systemClock, systemRandom);
const OPERATOR_TOKEN = "t".repeat(43);
const tokens = new Map<string, string>([["operator", OPERATOR_TOKEN]]);
const stopping = new AbortController();
let store: Store;
let app: Hono;
let mailbox: Mailbox;

beforeAll(async () => {
  store = await openStore(`sqlite:${join(folder, "state.db")}`);
  const access = new Access(store, { list: () => [] }, newId, systemRandom);
  const scopes = { alice: "guest:alice", bob: "guest:bob", mallory: "guest:mallory", reader: "read" };
  for (const [name, scope] of Object.entries(scopes)) tokens.set(name, (await access.create(OPERATOR, { scope })).token);
  mailbox = new Mailbox(store, newId);
  app = createApp({
    store,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    routes: poolsRoutes({ pools: new Pools(store), mailbox, claims: new Claims(store, "node") }),
    authenticate: operatorOr(OPERATOR_TOKEN, (token) => access.authenticate(token)),
    stillValid: (ids) => access.stillValid(ids),
    host: "127.0.0.1",
    version: "0.0.0",
    stopping: stopping.signal,
  });
  await ask("operator", "POST", "/api/pools", { name: "house", readers: ["alice", "bob"], writers: ["alice", "bob"] });
});
afterAll(async () => {
  stopping.abort();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  readonly etag: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  readonly body: any;
}

async function ask(who: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await app.request(path, {
    method,
    headers: { host: "127.0.0.1:4270", authorization: `Bearer ${tokens.get(who)}`, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, etag: response.headers.get("etag"), body: await response.json() };
}

const ENTRY = "/api/pools/house/entries/plan";

test("an entry is put once, replaced by its version, read, removed, and found no more", async () => {
  expect(await ask("alice", "PUT", ENTRY, { value: { a: 1 } }, { "if-none-match": "*" })).toMatchObject({
    status: 201,
    etag: '"1"',
    body: { pool: "house", key: "plan", value: { a: 1 }, version: 1, author: { agent: "alice", run: null, step: null }, label: "trusted" },
  });
  expect(await ask("bob", "GET", ENTRY)).toMatchObject({ status: 200, etag: '"1"', body: { version: 1 } });
  expect(await ask("bob", "PUT", ENTRY, { value: 2 })).toMatchObject({
    status: 412,
    body: { error: { code: "pool.conflict", details: { current: { version: 1 } } } },
  });
  expect(await ask("bob", "PUT", ENTRY, { value: { a: 2 }, note: "better" }, { "if-match": '"1"' })).toMatchObject({
    status: 200,
    etag: '"2"',
  });
  expect(await ask("alice", "PUT", ENTRY, { value: 3 }, { "if-match": '"1"' })).toMatchObject({
    status: 412,
    body: { error: { details: { current: { value: { a: 2 } } } } },
  });
  expect(await ask("alice", "GET", `${ENTRY}?version=1`)).toMatchObject({ body: { value: { a: 1 } } });
  expect(await ask("alice", "GET", `${ENTRY}/history`)).toMatchObject({
    body: { entries: [{ version: 1 }, { version: 2, note: "better" }] },
  });
  expect(await ask("alice", "GET", `${ENTRY}/diff?from=1&to=2`)).toMatchObject({
    body: { changes: [{ path: "/a", before: 1, after: 2 }] },
  });
  expect(await ask("alice", "GET", `${ENTRY}/readers`)).toMatchObject({
    body: { readers: [{ agent: "bob", run: null, version: 1 }, { agent: "alice" }, { agent: "alice" }] },
  });
  expect(await ask("alice", "DELETE", ENTRY, undefined, { "if-match": '"1"' })).toMatchObject({ status: 412 });
  expect(await ask("alice", "DELETE", ENTRY, undefined, { "if-match": '"2"' })).toMatchObject({
    status: 200,
    etag: '"3"',
    body: { deleted: true },
  });
  expect(await ask("alice", "GET", ENTRY)).toMatchObject({ status: 404, body: { error: { code: "request.not_found" } } });
  expect(await ask("alice", "PUT", ENTRY, { value: 0, ttl: "1h" }, { "if-none-match": "*" })).toMatchObject({
    status: 201,
    etag: '"4"',
    body: { expiresAt: expect.any(Number) },
  });
});

test("keys may contain anything that a URL can carry", async () => {
  for (const key of ["src/a b.ts", "50%", "a%2Fb", "ключ/🙂", "__proto__", "history", "?q=1&r#x"]) {
    const path = `/api/pools/house/entries/${encodeURIComponent(key)}`;
    expect(await ask("alice", "PUT", path, { value: key })).toMatchObject({ status: 201, body: { key } });
    expect(await ask("bob", "GET", path)).toMatchObject({ status: 200, body: { key, value: key } });
    expect(await ask("bob", "GET", `${path}/history`)).toMatchObject({ status: 200, body: { entries: [{ key }] } });
  }
  expect(await ask("alice", "GET", "/api/pools/house/entries?prefix=src/")).toMatchObject({
    body: { entries: [{ key: "src/a b.ts" }], next: null },
  });
});

test("a batch and the mail it answers are one thing", async () => {
  await mailbox.send(OPERATOR, newMail.parse({ to: "alice", type: "task", content: 1 }));
  const alice = { ...OPERATOR, kind: "guest" as const, name: "alice" };
  const [letter] = await mailbox.receive(alice, { max: 1, visibility_ms: 60_000, wait_ms: 0 });
  const { id, fence } = letter as { id: string; fence: number };
  const send = (acked: number) =>
    ask("alice", "POST", "/api/pools/house/batch", { writes: [{ key: "z", value: 1 }], ack: [{ id, fence: acked }] });
  expect(await send(fence + 1)).toMatchObject({ status: 409, body: { error: { code: "mail.stale" } } });
  expect(await ask("alice", "GET", "/api/pools/house/entries/z")).toMatchObject({ status: 404 });
  expect(await send(fence)).toMatchObject({ status: 200 });
  expect(await store.read.all`select 1 from mail where state = 'acked'`).toHaveLength(1);
  const writes = [
    { key: "x", value: 1, if_version: null },
    { key: "y", value: 2 },
  ];
  const done = await ask("alice", "POST", "/api/pools/house/batch", { writes }, { "idempotency-key": "b1" });
  expect(done).toMatchObject({
    status: 200,
    body: {
      entries: [
        { key: "x", version: 1 },
        { key: "y", version: 1 },
      ],
    },
  });
  expect(await ask("alice", "POST", "/api/pools/house/batch", { writes }, { "idempotency-key": "b1" })).toEqual(done);
  expect(await ask("alice", "POST", "/api/pools/house/batch", { writes })).toMatchObject({ status: 412 });
});

test("what is not one's own answers as what is not there", async () => {
  for (const [method, path, body] of [
    ["GET", "/api/pools/POOL", undefined],
    ["GET", "/api/pools/POOL/entries", undefined],
    ["GET", "/api/pools/POOL/entries/plan", undefined],
    ["GET", "/api/pools/POOL/entries/plan/blame", undefined],
    ["GET", "/api/pools/POOL/snapshot", undefined],
    ["GET", "/api/pools/POOL/watch", undefined],
    ["PUT", "/api/pools/POOL/entries/plan", { value: 1 }],
    ["DELETE", "/api/pools/POOL/entries/plan", undefined],
    ["POST", "/api/pools/POOL/batch", { writes: [{ key: "k", value: 1 }] }],
    ["POST", "/api/pools/POOL/entries/plan/retract", { version: 1, reason: "x" }],
  ] as const) {
    const theirs = await ask("mallory", method, path.replace("POOL", "house"), body);
    const nobodys = await ask("mallory", method, path.replace("POOL", "nowhere"), body);
    expect(theirs.status, path).toBe(404);
    expect(JSON.stringify(theirs).replaceAll("house", "nowhere"), path).toBe(JSON.stringify(nobodys));
  }
  expect(await ask("mallory", "GET", "/api/pools")).toMatchObject({ body: { pools: [] } });
  expect(await ask("reader", "PUT", ENTRY, { value: 1 })).toMatchObject({ status: 403 });
  expect(await ask("alice", "POST", "/api/pools", { name: "own" })).toMatchObject({ status: 403 });
  expect(await ask("operator", "POST", "/api/pools", { name: "house" })).toMatchObject({
    status: 409,
    body: { error: { code: "pool.exists" } },
  });
});

test("malformed requests say what was expected", async () => {
  for (const headers of [
    { "if-match": "x" },
    { "if-match": "*" },
    { "if-none-match": '"1"' },
    { "if-match": '"1"', "if-none-match": "*" },
  ]) {
    expect(await ask("alice", "PUT", ENTRY, { value: 1 }, headers as unknown as Record<string, string>)).toMatchObject({ status: 422 });
  }
  for (const body of [{}, { value: 1, author: "operator" }, { value: 1, ttl: "soon" }, []]) {
    expect(await ask("alice", "PUT", ENTRY, body)).toMatchObject({ status: 422 });
  }
  expect(await ask("alice", "GET", `${ENTRY}?version=last`)).toMatchObject({ status: 422 });
  expect(await ask("alice", "PUT", "/api/pools/house/entries/big", { value: "x".repeat(300_000) })).toMatchObject({
    status: 413,
    body: { error: { code: "pool.too_large" } },
  });
  expect(await ask("operator", "POST", "/api/pools", { name: "run:1" })).toMatchObject({ status: 422 });
});

test("a retraction names what is withdrawn and tells those who have read it", async () => {
  await ask("alice", "PUT", "/api/pools/house/entries/source", { value: "wrong" });
  await ask("bob", "GET", "/api/pools/house/entries/source");
  await ask("bob", "PUT", "/api/pools/house/entries/result", { value: "from wrong" });
  const blame = await ask("operator", "GET", "/api/pools/house/entries/result/blame");
  expect(blame.body.derivedFrom).toContainEqual(expect.objectContaining({ key: "source", version: 1 }));
  const path = "/api/pools/house/entries/source/retract";
  expect(await ask("bob", "POST", path, { version: 1, reason: "x" })).toMatchObject({ status: 403 });
  const answer = await ask("operator", "POST", path, { version: 1, reason: "made up" });
  expect(answer).toMatchObject({
    status: 200,
    body: { retracted: expect.arrayContaining([{ pool: "house", key: "result", version: 1 }]) },
  });
  expect(await ask("bob", "GET", "/api/pools/house/entries/result")).toMatchObject({ status: 404 });
  expect(await store.read.all`select 1 from mail where recipient = 'bob'`).toHaveLength(1);
});

test("R5 a body is read as far as its sender may write, so that nobody else can make everybody wait", async () => {
  const keys = { film: { max_bytes: 3 * 1_048_576 }, heap: { overflow: "spill" } };
  expect(await ask("operator", "POST", "/api/pools", { name: "films", readers: ["bob"], writers: ["alice"], keys })).toMatchObject({
    status: 201,
  });
  const value = "x".repeat(2 * 1_048_576);
  const put = async (who: string, key: string) => (await ask(who, "PUT", `/api/pools/films/entries/${key}`, { value })).body;
  for (const key of ["film", "heap"]) expect(await put("alice", key)).toMatchObject({ key, version: 1 });
  for (const [who, key] of [
    ["alice", "note"],
    ["bob", "film"],
    ["mallory", "film"],
  ] as const)
    expect(await put(who, key)).toMatchObject({ error: { code: "request.too_large" } });
  const batch = (who: string) => ask(who, "POST", "/api/pools/films/batch", { writes: [{ key: "film", value, if_version: 1 }] });
  expect(await batch("alice")).toMatchObject({ status: 200 });
  expect(await batch("bob")).toMatchObject({ status: 413 });
});

test("a watcher hears of every operation, and begins again where it stopped", async () => {
  const path = "/api/pools/house/watch";
  const listen = async (after: number, until: number): Promise<{ id: number; data: PoolChange }[]> => {
    const response = await app.request(`${path}?after=${after}`, {
      headers: { host: "127.0.0.1:4270", authorization: `Bearer ${tokens.get("bob")}` },
    });
    const seen: { id: number; data: PoolChange }[] = [];
    let text = "";
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const [id, data] = [/^id: ?(\d+)$/m, /^data: ?(.*)$/m].map((part) => part.exec(text.slice(0, end))?.[1]);
        if (id && data) seen.push({ id: Number(id), data: JSON.parse(data) });
        text = text.slice(end + 2);
      }
      if (seen.length >= until) break;
    }
    return seen;
  };
  const start = await store.ledger.horizon();
  const live = listen(start, 3);
  for (const key of ["w1", "w2", "w3"]) await ask("alice", "PUT", `/api/pools/house/entries/${key}`, { value: key });
  const seen = await live;
  expect(seen.map((event) => event.data.data.keys[0]?.key)).toEqual(["w1", "w2", "w3"]);
  expect(seen[0]).toMatchObject({
    data: { seq: seen[0]?.id, type: "pool.written", actor: "alice", causedBy: null, subject: ["pool", "house"] },
  });
  expect(await listen(seen[0]?.id as number, 2)).toEqual(seen.slice(1));
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Hono } from "hono";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Proposal, proposal } from "../../contract/proposals.ts";
import { OPERATOR } from "../../kernel/caller.ts";
import { systemClock } from "../../kernel/clock.ts";
import { idSource } from "../../kernel/ids.ts";
import { systemRandom } from "../../kernel/random.ts";
import { Access } from "../../records/access/access.ts";
import { Agreements } from "../../records/agreements/agreements.ts";
import { Pools } from "../../records/pools/pools.ts";
import { openStore, type Store } from "../../store/store.ts";
import { createApp } from "./app.ts";
import { operatorOr } from "./credential.ts";
import { proposalsRoutes } from "./proposals-routes.ts";

const folder = mkdtempSync(join(tmpdir(), "guildhall-proposals-"));
const newId = idSource(systemClock, systemRandom);
const tokens = new Map<string, string>();
let store: Store;
let pools: Pools;
let app: Hono;

beforeAll(async () => {
  store = await openStore(`sqlite:${join(folder, "state.db")}`);
  pools = new Pools(store);
  const access = new Access(store, { list: () => [] }, newId, systemRandom);
  const scopes = { alice: "guest:alice", bob: "guest:bob", mallory: "guest:mallory", reader: "read", channel: "channel:telegram" };
  for (const [name, scope] of Object.entries(scopes)) tokens.set(name, (await access.create(OPERATOR, { scope })).token);
  await store.transact("make pool", (tx) => pools.createIn(tx, "operator", "plans", { readers: ["bob"], writers: ["alice"] }), "locked");
  app = createApp({
    store,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    routes: proposalsRoutes({ store, agreements: new Agreements(store), pools }, newId),
    authenticate: operatorOr("t".repeat(43), (token) => access.authenticate(token)),
    stillValid: (ids) => access.stillValid(ids),
    host: "127.0.0.1",
    version: "0.0.0",
    stopping: new AbortController().signal,
  });
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function call(
  who: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<{ status: number; body: unknown; replayed: boolean }> {
  const headers = { host: "127.0.0.1:4270", authorization: `Bearer ${tokens.get(who)}`, ...(key ? { "idempotency-key": key } : {}) };
  const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const response = await app.request(path, init);
  return { status: response.status, body: await response.json(), replayed: response.headers.has("idempotent-replayed") };
}

const DRAFT = { subject: "ship it", electorate: ["alice", "bob"], rule: "all", deadline_ms: 60_000 };
async function opened(draft: object = {}): Promise<Proposal> {
  const { status, body } = await call("alice", "/api/proposals", { ...DRAFT, ...draft });
  expect(status).toBe(201);
  return proposal.parse(body);
}
const vote = (who: string, { id, hash }: Proposal, kind = "yes") => call(who, `/api/proposals/${id}/votes`, { vote: kind, hash });

test("two votes decide a proposal, and everybody concerned reads the same outcome", async () => {
  const made = await opened({ writes: [{ pool: "plans", key: "release", value: "2.0", ttl: "10m" }] });
  expect(made).toMatchObject({ state: "open", because: null, votes: [], pins: [{ pool: "plans", key: "release", version: null }] });
  expect(await vote("alice", made)).toMatchObject({ status: 200, body: { state: "open", votes: [{ voter: "alice", vote: "yes" }] } });
  expect(await vote("alice", made, "veto")).toMatchObject({
    status: 200,
    body: { state: "open", votes: [{ voter: "alice", vote: "yes" }] },
  });
  expect(await vote("bob", made)).toMatchObject({ status: 200, body: { state: "committed" } });
  const read = await Promise.all(["alice", "bob", "reader"].map((who) => call(who, `/api/proposals/${made.id}`)));
  expect(new Set(read.map((each) => JSON.stringify(each.body))).size).toBe(1);
  expect((await pools.read(OPERATOR, "plans", "release"))?.value).toBe("2.0");
  expect(await vote("bob", made)).toMatchObject({ status: 200, body: { state: "committed" } });
});

test("outsiders, other hashes and late votes are refused", async () => {
  const made = await opened({ electorate: ["bob"] });
  expect(await vote("alice", made)).toMatchObject({ status: 403, body: { error: { code: "proposal.not_elector" } } });
  expect(await vote("reader", made)).toMatchObject({ status: 403 });
  for (const hash of ["0".repeat(64), "another"])
    expect(await vote("bob", { ...made, hash })).toMatchObject({ status: 409, body: { error: { code: "proposal.other_hash" } } });
  const outside = await vote("mallory", made);
  expect(outside).toMatchObject({ status: 403, body: { error: { code: "proposal.not_elector", details: {} } } });
  expect(await vote("mallory", { ...made, hash: "0".repeat(64) })).toEqual(outside);
  expect((await vote("mallory", { ...made, id: "0".repeat(20) })).status).toBe(404);
  const [hidden, unknown] = await Promise.all([made.id, "0".repeat(20)].map((id) => call("mallory", `/api/proposals/${id}`)));
  expect(hidden?.status).toBe(404);
  expect(JSON.stringify(hidden).replaceAll(made.id, "0".repeat(20))).toBe(JSON.stringify(unknown));
  expect((await call("channel", `/api/proposals/${made.id}`)).status).toBe(403);
  const other = await opened({ electorate: ["bob", "mallory"], rule: { k: 1 } });
  await vote("bob", other);
  expect(await vote("mallory", other)).toMatchObject({
    status: 409,
    body: { error: { code: "proposal.closed", details: { state: "committed" } } },
  });
});

test.each<[string, object]>([
  ["electorate", { electorate: ["bob", "bob"] }],
  ["electorate", { electorate: [] }],
  ["rule", { rule: "most" }],
  ["rule", { rule: { k: 3 } }],
  ["deadline_ms", { deadline_ms: Date.now() }],
  ["writes.0.value", { writes: [{ pool: "plans", key: "x" }] }],
  ["writes", { writes: [1, 2].map((value) => ({ pool: "plans", key: "x", value })) }],
  ["subject", { subject: "x".repeat(10_001) }],
  ["pins.0.version", { pins: [{ pool: "plans", key: "x", version: 0 }] }],
])("a proposal with a wrong %s is refused, and the field is named", async (field, wrong) => {
  const { status, body } = await call("alice", "/api/proposals", { ...DRAFT, ...wrong });
  expect({ status, body }).toMatchObject({
    status: 422,
    body: { error: { code: "request.malformed", message: expect.stringContaining(field) } },
  });
});

test("R5 a proposal too large to be hashed with every vote is refused", async () => {
  const of = (bytes: number) =>
    call("alice", "/api/proposals", { ...DRAFT, writes: [{ pool: "plans", key: "x", value: "x".repeat(bytes) }] });
  expect((await of(500 * 1024)).status).toBe(201);
  expect((await of(512 * 1024)).status).toBe(413);
});

test("E1 the same key opens one proposal and counts one vote", async () => {
  const first = await call("alice", "/api/proposals", DRAFT, "k1");
  const again = await call("alice", "/api/proposals", DRAFT, "k1");
  expect(again).toEqual({ ...first, replayed: true });
  expect((await call("alice", "/api/proposals", { ...DRAFT, rule: "majority" }, "k1")).status).toBe(409);
  const made = first.body as Proposal;
  const path = `/api/proposals/${made.id}/votes`;
  const voted = await call("bob", path, { vote: "no", hash: made.hash }, "k2");
  expect(await call("bob", path, { vote: "no", hash: made.hash }, "k2")).toEqual({ ...voted, replayed: true });
  expect(voted.body).toMatchObject({ state: "aborted", votes: [{ voter: "bob" }] });
});

test("a list shows each identity its own", async () => {
  const ids = async (who: string): Promise<string[]> =>
    ((await call(who, "/api/proposals?limit=100")).body as { proposals: { id: string }[] }).proposals.map(({ id }) => id);
  const made = await opened({ electorate: ["mallory"] });
  expect(await ids("mallory")).toContain(made.id);
  expect(await ids("bob")).not.toContain(made.id);
  expect((await ids("reader")).length).toBeGreaterThan((await ids("mallory")).length);
  expect((await call("alice", "/api/proposals?state=gone")).status).toBe(422);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { Hono } from "hono";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { modelRegistry } from "../../abilities/models/model-registry.ts";
import { offlineProvider } from "../../abilities/models/offline-model.ts";
import { configSchema } from "../../contract/config.ts";
import { errorBody } from "../../contract/wire.ts";
import { intake } from "../../drivers/intake/accept.ts";
import { whereTo } from "../../drivers/intake/where-to.ts";
import { OPERATOR } from "../../kernel/caller.ts";
import { systemClock } from "../../kernel/clock.ts";
import { noCrashPoints } from "../../kernel/crash-points.ts";
import { idSource } from "../../kernel/ids.ts";
import { systemRandom } from "../../kernel/random.ts";
import { Access } from "../../records/access/access.ts";
import { Approvals } from "../../records/access/approvals.ts";
import { Guests } from "../../records/access/guests.ts";
import { AgentRegistry } from "../../records/agents/registry.ts";
import { revisionWithoutFile } from "../../records/agents/revision.ts";
import { Agreements } from "../../records/agreements/agreements.ts";
import { Claims } from "../../records/claims/claims.ts";
import { Mailbox } from "../../records/mailbox/mailbox.ts";
import { Pools } from "../../records/pools/pools.ts";
import { Schedules } from "../../records/schedules/schedules.ts";
import { Sessions } from "../../records/sessions/sessions.ts";
import { KnownWorkflows } from "../../records/workflows/known-workflows.ts";
import { openStore, type Store } from "../../store/store.ts";
import { LiveHub } from "../../turns/live-hub.ts";
import { TurnsHere } from "../../turns/turns-here.ts";
import { allRoutes } from "./all-routes.ts";
import { createApp } from "./app.ts";
import { operatorOr } from "./credential.ts";
import { raw } from "./route.ts";

const TOKEN = "t".repeat(43);
const folder = mkdtempSync(join(tmpdir(), "guildhall-api-"));
const newId = idSource(systemClock, systemRandom);
const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const stopping = new AbortController();
let store: Store;
let ready = true;
let app: Hono;
let access: Access;

/** Agents are shown with a whole daemon: see test/scenarios/agents.test.ts. */
const elsewhere = () => Promise.reject(new Error("not here"));

beforeAll(async () => {
  store = await openStore(`sqlite:${join(folder, "state.db")}`);
  const agents = new AgentRegistry(revisionWithoutFile(configSchema.parse({ agents: { main: {}, coder: {} } })));
  access = new Access(store, agents, newId, systemRandom);
  app = appFor("127.0.0.1");
});
afterAll(async () => {
  stopping.abort();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function appFor(host: string): Hono {
  const agents = new AgentRegistry(revisionWithoutFile(configSchema.parse({})));
  const approvals = new Approvals(store, newId);
  const running = new TurnsHere();
  const tasks = { store, newId, agents, pools: new Pools(store), workflows: new KnownWorkflows(), delivers: () => false };
  const { accept } = intake(store, agents, newId, noCrashPoints, {
    models: modelRegistry([offlineProvider]),
    approvals,
    running,
    tasks,
    delivers: () => true,
  });
  return createApp({
    store,
    log: quiet,
    routes: allRoutes({
      tasks,
      home: folder,
      store,
      log: quiet,
      accept,
      agents,
      live: new LiveHub(),
      running,
      sessions: new Sessions(store, agents),
      whereTo: whereTo(store, agents),
      approvals,
      access,
      claims: new Claims(store, "n"),
      mailbox: new Mailbox(store, idSource(systemClock, systemRandom)),
      agreement: { store, agreements: new Agreements(store), pools: new Pools(store) },
      newId,
      guests: new Guests(store, access, new AgentRegistry(revisionWithoutFile(configSchema.parse({})))),
      policy: () => revisionWithoutFile(configSchema.parse({})).policy,
      agentControl: { list: elsewhere, details: elsewhere, setState: elsewhere, restart: elsewhere, revisions: elsewhere },
      mcp: async () => new Response("mcp"),
      hooks: async () => Promise.reject(new Error("not here")),
      accounts: () => [],
      missingNodes: () => [],
      a2a: async () => new Response("a2a"),
      schedules: { tasks, schedules: new Schedules(store, newId), reached: noCrashPoints },
      version: "0.0.0",
      node: "n",
      isReady: () => ready,
    }),
    authenticate: operatorOr(TOKEN, (token) => access.authenticate(token)),
    stillValid: (ids) => access.stillValid(ids),
    host,
    version: "0.0.0",
    stopping: stopping.signal,
    isDraining: () => !ready,
  });
}

async function call(path: string, init: RequestInit & { headers?: Record<string, string> } = {}, to: Hono = app) {
  const headers = { host: "127.0.0.1:4270", authorization: `Bearer ${TOKEN}`, ...init.headers };
  const response = await to.request(path, { ...init, headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) };
}

const message = { id: "1", platform: "test", chat: "c", peer: "p", chat_type: "dm", text: "hello" };
const post = (body: unknown) => call("/api/messages", { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });

describe("who may call", () => {
  test.each([
    ["no token", ""],
    ["a wrong token", `Bearer ${"x".repeat(43)}`],
    ["a beginning of the token", `Bearer ${TOKEN.slice(0, 42)}`],
    ["another scheme", `Basic ${TOKEN}`],
  ])("%s: 401", async (_name, authorization) => {
    const { status, headers, body } = await call("/api/runs/x", { headers: { authorization } });
    expect([status, headers.get("www-authenticate"), body.error.code]).toEqual([401, "Bearer", "request.unauthenticated"]);
  });

  test.each(["evil.example", "evil.example:4270", "127.0.0.1.evil.example", "", "a b", "192.168.0.7"])(
    "Host %j: 403, even for health",
    async (host) => {
      expect((await call("/healthz", { headers: { host } })).status).toBe(403);
    },
  );

  test.each(["localhost:4270", "127.0.0.1", "[::1]:4270", "LOCALHOST"])("Host %s is ours", async (host) => {
    expect((await call("/healthz", { headers: { host } })).status).toBe(200);
  });

  test("listening everywhere, any address will do, but no foreign name", async () => {
    const open = appFor("0.0.0.0");
    expect((await call("/healthz", { headers: { host: "192.168.0.7:4270" } }, open)).status).toBe(200);
    expect((await call("/healthz", { headers: { host: "evil.example" } }, open)).status).toBe(403);
  });

  test.each(["https://evil.example", "null", "http://127.0.0.1:9999"])("Origin %s: 403, token or not", async (origin) => {
    expect((await call("/api/runs/x", { headers: { origin } })).status).toBe(403);
  });

  test("our own pages may call", async () => {
    expect((await call("/healthz", { headers: { origin: "http://127.0.0.1:4270" } })).status).toBe(200);
  });
});

describe("messages", () => {
  test("are admitted once", async () => {
    const first = await post(message);
    expect([first.status, first.body.agent, first.body.sessionKey, first.body.duplicate]).toEqual([
      202,
      "main",
      "agent:main:test:dm:p",
      false,
    ]);
    expect((await post(message)).body).toEqual({ ...first.body, duplicate: true });
    const run = await call(`/api/runs/${first.body.runId}`);
    expect(run.body).toMatchObject({ id: first.body.runId, status: "queued", reply: null, decision: { tier: "default" }, error: null });
  });

  test.each([
    ["not JSON", "{", /not JSON/],
    ["no body", "", /not JSON/],
    ["a list", [], /expected object/],
    ["a missing field", { ...message, text: undefined }, /^text: /],
    ["an unknown field", { ...message, colour: "red" }, /colour/],
    ["a number for an id", { ...message, chat: 7 }, /^chat: /],
    ["an unknown chat type", { ...message, chat_type: "party" }, /^chat_type: /],
    ["half of a surrogate pair", { ...message, peer: "\ud800" }, /^peer: .*well-formed/],
    ["NUL", { ...message, text: "a\0b" }, /^text: .*NUL/],
    ["an endless id", { ...message, id: "x".repeat(257) }, /^id: /],
  ])("%s: 422", async (_name, body, problem) => {
    const answer = await post(body);
    expect(answer.status).toBe(422);
    expect(errorBody.parse(answer.body).error).toMatchObject({
      code: "request.malformed",
      retry: "never",
      message: expect.stringMatching(problem),
    });
  });

  test("more than 1 MiB: 413, whether or not its size is declared", async () => {
    const large = JSON.stringify({ ...message, text: "x".repeat(1024 * 1024) });
    expect((await call("/api/messages", { method: "POST", body: large, headers: { "content-length": String(large.length) } })).status).toBe(
      413,
    );
    const chunks = ReadableStream.from([new TextEncoder().encode(large)]);
    const undeclared = { method: "POST", body: chunks, duplex: "half", headers: { "transfer-encoding": "chunked" } };
    expect((await call("/api/messages", undeclared as never)).status).toBe(413);
  });

  test("to an agent that does not exist: 404 with the nearest name", async () => {
    const { status, body } = await post({ ...message, id: "2", agent: "mian" });
    expect([status, body.error.code, body.error.message]).toEqual([
      404,
      "agent.unknown",
      'there is no agent "mian" (did you mean "main"?)',
    ]);
  });
});

test("unknown runs and paths answer 404 in the common shape", async () => {
  for (const path of [
    "/api/runs/nothing",
    "/api/runs/%00",
    "/api/runs/%E0%A4%A",
    "/api/nothing",
    "/nothing",
    `/api/runs/${"0".repeat(20)}`,
  ]) {
    const { status, body } = await call(path);
    expect([path, status, errorBody.parse(body).error.code]).toEqual([path, 404, "request.not_found"]);
  }
});

test("ready until it stops; then whoever asks is sent elsewhere, and only those who watch over it are answered", async () => {
  expect((await call("/readyz")).body).toEqual({ status: "ready", version: "0.0.0", node: "n" });
  ready = false;
  expect([(await call("/readyz")).status, (await call("/healthz")).status]).toEqual([503, 200]);
  expect((await app.request("/metrics", { headers: { host: "127.0.0.1:4270" } })).status).toBe(200);
  const { status, body, headers } = await post({ ...message, id: "while it stops" });
  expect([status, errorBody.parse(body).error.code, headers.get("retry-after")]).toEqual([503, "daemon.stopping", "1"]);
  expect((await call("/v1/models")).body).toMatchObject({ error: { code: "daemon.stopping" } });
  ready = true;
});

describe("the event stream", () => {
  async function firstEvents(path: string, count: number, headers: Record<string, string> = {}): Promise<string[]> {
    const response = await app.request(path, { headers: { host: "localhost", authorization: `Bearer ${TOKEN}`, ...headers } });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const reader = (response.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream() as never)
      .getReader() as ReadableStreamDefaultReader<string>;
    let text = "";
    while (text.split("id: ").length <= count) text += (await reader.read()).value ?? "";
    await reader.cancel();
    return [...text.matchAll(/id: (\d+)/g)].map(([, id]) => id as string).slice(0, count);
  }

  test("begins where it is told to, by number or by the last event seen", async () => {
    await post({ ...message, id: "stream" });
    expect(await firstEvents("/api/events", 3)).toEqual(["1", "2", "3"]);
    expect(await firstEvents("/api/events?after=1", 2)).toEqual(["2", "3"]);
    expect(await firstEvents("/api/events?after=1", 1, { "last-event-id": "2" })).toEqual(["3"]);
  });

  test("tells of one subject only, where one is named", async () => {
    const { runId } = (await post({ ...message, id: "subject" })).body;
    const mine = (await store.ledger.read(0, 1_000)).filter(({ subject }) => subject[1] === runId).map(({ seq }) => String(seq));
    expect(mine.length).toBeGreaterThan(0);
    expect(await firstEvents(`/api/events?subject=run/${runId}`, mine.length)).toEqual(mine);
    expect((await call("/api/events?subject=%25E0")).status).toBe(422);
  });

  test("asked for its headers only, it is not opened", async () => {
    const headers = { host: "localhost", authorization: `Bearer ${TOKEN}` };
    expect((await app.request("/api/events", { method: "HEAD", headers })).status).toBe(200);
    expect(await (await app.request("/metrics", { headers })).text()).toContain("\nguildhall_http_streams_open 0\n");
  });

  test("a number that is none: 422", async () => {
    for (const after of ["x", "-1", "1e3", "9".repeat(20)]) expect((await call(`/api/events?after=${after}`)).status).toBe(422);
  });
});

describe("scopes", () => {
  const as = async (scope: string) => ({ authorization: `Bearer ${(await access.create(OPERATOR, { scope })).token}` });

  test("a reader looks and changes nothing", async () => {
    const headers = await as("read");
    const { runId } = (await post({ ...message, id: "seen" })).body;
    expect((await call(`/api/runs/${runId}`, { headers })).status).toBe(200);
    for (const [method, path] of [
      ["POST", "/api/messages"],
      ["POST", "/api/tokens"],
      ["GET", "/api/tokens"],
      ["DELETE", "/api/tokens/x"],
    ] as const) {
      const answer = await call(path, { method, headers, ...(method === "POST" ? { body: "{}" } : {}) });
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 403, "request.forbidden"]);
    }
  });

  test("an agent sees its own runs; another's are as if there were none", async () => {
    const { runId } = (await post({ ...message, id: "mine" })).body;
    expect((await call(`/api/runs/${runId}`, { headers: await as("agent:main") })).status).toBe(200);
    const other = await call(`/api/runs/${runId}`, { headers: await as("agent:coder") });
    const none = await call(`/api/runs/${"0".repeat(20)}`, { headers: await as("agent:coder") });
    expect(other.body.error.message.replace(runId, "x")).toBe(none.body.error.message.replace("0".repeat(20), "x"));
    expect([other.status, other.body.error.code]).toEqual([none.status, none.body.error.code]);
    expect((await call(`/api/runs/${runId}/live`, { headers: await as("agent:coder") })).status).toBe(404);
  });

  test("a channel posts messages of its own platform and account, and does not choose the agent", async () => {
    const headers = await as("channel:test/work");
    const send = (change: object) =>
      call("/api/messages", { method: "POST", headers, body: JSON.stringify({ ...message, account: "work", ...change }) });
    expect((await send({ id: "own" })).status).toBe(202);
    for (const foreign of [{ platform: "other" }, { account: "home" }, { agent: "main" }]) expect((await send(foreign)).status).toBe(403);
    expect((await call("/api/events", { headers })).status).toBe(403);
  });

  test("only those who oversee follow the ledger", async () => {
    for (const scope of ["agent:main", "guest:visitor"]) expect((await call("/api/events", { headers: await as(scope) })).status).toBe(403);
  });

  test("a scope nobody has is refused by name", async () => {
    for (const scope of ["admin", "agent:", "guest:Über", "guest:a b", "channel:", "operator ", "agent:nobody", "guest:main"]) {
      const answer = await call("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
      expect([scope, answer.status]).toEqual([scope, scope === "agent:nobody" ? 404 : 422]);
    }
  });

  test("tokens are made, listed without their secrets, and revoked", async () => {
    const made = await call("/api/tokens", { method: "POST", body: JSON.stringify({ scope: "guest:ann", name: "laptop" }) });
    expect([made.status, made.body.scope]).toEqual([201, "guest:ann"]);
    const headers = { authorization: `Bearer ${made.body.token}` };
    expect((await call("/api/openapi.json", { headers })).status).toBe(200);
    const { body } = await call("/api/tokens");
    expect(body.tokens.find(({ id }: { id: string }) => id === made.body.id)).toMatchObject({ name: "laptop", revokedAt: null });
    expect(JSON.stringify(body)).not.toContain(made.body.token);
    expect((await call(`/api/tokens/${made.body.id}`, { method: "DELETE" })).body.revokedAt).toBeGreaterThan(0);
    expect((await call("/api/openapi.json", { headers })).status).toBe(401);
  });
});

describe("what a body may be", () => {
  test.each([
    ["100,000 levels of lists", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, /levels deep/],
    ["100,000 levels of maps, never closed", '{"a":'.repeat(100_000), /levels deep/],
    ["101 levels", `${"[".repeat(101)}${"]".repeat(101)}`, /levels deep/],
    ["__proto__", '{"__proto__": {"x": 1}}', /__proto__/],
    ["__proto__ in disguise, deep inside", '{"id": [[{"__pr\\u006fto__": 1}]]}', /__proto__/],
    ["bytes that are no text", new Uint8Array([0x22, 0xff, 0x22]), /UTF-8/],
  ])("%s: 422", async (_name, body, problem) => {
    const answer = await call("/api/messages", { method: "POST", body });
    expect([answer.status, answer.body.error.code]).toEqual([422, "request.malformed"]);
    expect(answer.body.error.message).toMatch(problem);
  });

  test("brackets inside a text are no levels", async () => {
    expect((await post({ ...message, id: "brackets", text: `${"[".repeat(200)}"\\` })).status).toBe(202);
  });
});

test("measurements need no token, and made-up paths and methods make no series", async () => {
  for (const path of ["/made/up", "/api/made-up"]) await call(path, { method: "BREW" });
  await call("/api/runs/x");
  const text = await (await app.request("/metrics", { headers: { host: "localhost" } })).text();
  expect(text).toMatch(/guildhall_http_request_seconds_count\{method="GET",route="\/api\/runs\/:id",status="404"\} \d+/);
  expect(text).not.toMatch(/made|BREW/);
});

test("the API describes itself, and the description is valid", async () => {
  const { body } = await call("/api/openapi.json");
  expect(await new Validator().validate(structuredClone(body))).toMatchObject({ valid: true });
  expect(Object.keys(body.paths)).toContain("/api/runs/{id}");
  const references = [...JSON.stringify(body).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];
  expect(references.length).toBeGreaterThan(0);
  for (const [, kind, name] of references) expect(body.components[kind as string]).toHaveProperty(name as string);
  expect(JSON.stringify(body)).not.toMatch(/"\$ref":"#(?!\/components\/)/);
});

test("R1 one token's waiting requests leave room for the others, and a stream without a place is let go of", async () => {
  const release = Promise.withResolvers<void>();
  let cancelled = 0;
  const waiting = raw({
    methods: ["GET"],
    path: "/wait",
    summary: "Waits",
    allow: ["guest"],
    answer: async () => {
      await release.promise;
      return new Response("done");
    },
  });
  const streaming = raw({
    methods: ["GET"],
    path: "/stream",
    summary: "Streams",
    allow: ["guest"],
    answer: async () =>
      new Response(new ReadableStream({ cancel: () => void cancelled++ }), { headers: { "content-type": "text/event-stream" } }),
  });
  const small = createApp({
    store,
    log: quiet,
    routes: [waiting, streaming],
    authenticate: async (token) => ({ caller: { ...OPERATOR, kind: "guest", name: token }, tokenId: token }),
    stillValid: async (ids) => new Set(ids),
    host: "127.0.0.1",
    version: "0.0.0",
    stopping: stopping.signal,
    limits: { callsPerToken: 2, streamsPerToken: 1 },
  });
  const ask = (token: string, path: string) => small.request(path, { headers: { host: "localhost", authorization: `Bearer ${token}` } });
  const patient = [ask("a", "/wait"), ask("a", "/wait")];
  await new Promise((resolve) => setImmediate(resolve));
  const refused = await ask("a", "/wait");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
  const others = ask("b", "/wait");
  release.resolve();
  expect((await Promise.all([...patient, others])).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await ask("a", "/wait")).status).toBe(200);
  const first = await ask("c", "/stream");
  expect([first.status, (await ask("c", "/stream")).status, cancelled]).toEqual([200, 429, 1]);
  await first.body?.cancel();
  expect((await ask("c", "/stream")).status).toBe(200);
});

import type { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { createApp } from "../../src/edges/api/app.ts";
import { type Route, route } from "../../src/edges/api/route.ts";
import type { Caller } from "../../src/kernel/caller.ts";
import { Failure } from "../../src/kernel/failure.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const HOUR_MS = 3_600_000;
const log = { info: () => {}, warn: () => {}, error: () => {} };

describe.each(PLACES)("requests with an idempotency key on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let nodes: Hono[];
  let refuse: Failure | null;
  let before: () => Promise<void>;

  const wordRoute = (node: Store, path: "/api/words" | "/api/other", secret = false): Route =>
    route({
      method: "POST",
      path,
      summary: "Say a word in the ledger",
      allow: ["guest"],
      body: z.strictObject({ word: z.string() }),
      answers: { 201: z.object({ seq: z.number(), word: z.string() }) },
      secret,
      handle: async (call) => {
        await before();
        return call.transact("say", async (tx) => {
          if (refuse) throw refuse;
          const [seq = 0] = await node.ledger.append(tx, { type: "mail.sent", actor: call.caller.name, subject: ["word", call.body.word] });
          return { status: 201, body: { seq, word: call.body.word }, headers: { etag: `"${seq}"` } };
        });
      },
    });

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    refuse = null;
    before = async () => {};
    nodes = [store, await place.open()].map((node) =>
      createApp({
        store: node,
        log,
        routes: [wordRoute(node, "/api/words"), wordRoute(node, "/api/other", true)],
        authenticate: async (name) => ({ caller: guest(name.split(".")[0] as string), tokenId: null }),
        stillValid: async () => new Set(),
        host: "localhost",
        version: "0",
        stopping: new AbortController().signal,
      }),
    );
  });
  afterEach(() => place.remove());

  const guest = (name: string): Caller => ({ kind: "guest", name, roles: [], run: null, step: null, call: null });

  async function say(word: unknown, options: { key?: string; body?: object; as?: string; on?: number; path?: string } = {}) {
    const { key, body = {}, as = "ann", on = 0, path = "/api/words" } = options;
    const headers = { host: "localhost", authorization: `Bearer ${as}`, ...(key === undefined ? {} : { "idempotency-key": key }) };
    const answer = await nodes[on]?.request(path, { method: "POST", headers, body: JSON.stringify({ word, ...body }) });
    return { status: answer?.status, body: JSON.parse((await answer?.text()) ?? "null"), etag: answer?.headers.get("etag") };
  }
  const said = async (): Promise<string[]> => (await store.ledger.read(0, 1_000)).map(({ subject }) => subject[1] as string);

  test("E1 the same key and body: one effect, the same answer, on every node", async () => {
    const first = await say("hello", { key: "k" });
    expect(first).toMatchObject({ status: 201, body: { word: "hello" } });
    for (const on of [0, 1]) expect(await say("hello", { key: "k", on })).toEqual(first);
    expect(await say("hello", { body: { idempotency_key: "k" } })).toEqual(first);
    expect(await said()).toEqual(["hello"]);
  });

  test("E1 sixty at once on two nodes: one effect; the others get its answer, or are told to wait", async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => say("hello", { key: "k", on: index % 2 })));
    for (const { status, body } of answers) {
      if (status === 201) expect(body.word).toBe("hello");
      else expect([status, body.error.code, body.error.retry]).toEqual([409, "request.in_progress", "later"]);
    }
    expect(new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.seq)).size).toBe(1);
    expect(await said()).toEqual(["hello"]);
  });

  test("E1 another body or query is a conflict", async () => {
    await say("hello", { key: "k" });
    for (const other of [await say("bye", { key: "k" }), await say("hello", { key: "k", path: "/api/words?x=1" })])
      expect([other.status, other.body.error.code]).toEqual([409, "request.key_reused"]);
    expect(await said()).toEqual(["hello"]);
  });

  test("a key belongs to one identity and one path", async () => {
    const answers = [
      await say("hello", { key: "k" }),
      await say("hello", { key: "k", as: "bob" }),
      await say("hello", { key: "k", path: "/api/other" }),
    ];
    expect(new Set(answers.map(({ body }) => body.seq)).size).toBe(3);
  });

  test("it is kept for a day", async () => {
    const first = await say("hello", { key: "k" });
    await place.elapse(23 * HOUR_MS);
    expect(await say("hello", { key: "k" })).toEqual(first);
    await place.elapse(HOUR_MS + 1_000);
    expect((await say("bye", { key: "k" })).status).toBe(201);
    expect(await said()).toEqual(["hello", "bye"]);
  });

  test.each(["claim.held", "request.busy", "store.unavailable", "internal.bug"] as const)(
    "a refusal has no effect and is not kept: %s",
    async (code) => {
      refuse = new Failure(code, "not now");
      expect((await say("hello", { key: "k" })).status).toBe(refuse.entry.status);
      refuse = null;
      expect((await say("hello", { key: "k" })).status).toBe(201);
      expect(await said()).toEqual(["hello"]);
    },
  );

  test("E1 a runner that was stopped and overtaken has no effect", async () => {
    let goOn = () => {};
    const stopped = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    before = () => stopped;
    const paused = say("hello", { key: "k" });
    await expect.poll(async () => (await place.tamper("select * from idempotency")).length).toBe(1);
    expect((await say("hello", { key: "k", on: 1 })).body.error.code).toBe("request.in_progress");
    await place.elapse(15_001);
    before = async () => {};
    const second = await say("hello", { key: "k", on: 1 });
    expect(second.status).toBe(201);
    goOn();
    expect([(await paused).status, (await paused).body.error.code]).toEqual([409, "request.in_progress"]);
    expect(await say("hello", { key: "k" })).toEqual(second);
    expect(await said()).toEqual(["hello"]);
  });

  test("E1 a commit whose answer was lost is found again by its key (D3)", async () => {
    const real = store.transact.bind(store);
    store.transact = async (label, body, isolation) => {
      const result = await real(label, body, isolation);
      if (label === "say") throw new Failure("store.outcome_unknown", "the connection broke");
      return result;
    };
    expect((await say("hello", { key: "k" })).status).toBe(503);
    store.transact = real;
    expect((await say("hello", { key: "k" })).status).toBe(201);
    expect(await said()).toEqual(["hello"]);
  });

  test("an answer that holds a secret is not readable in the database, and replays for the same token only", async () => {
    const first = await say("hush", { key: "k", path: "/api/other" });
    expect(JSON.stringify(await place.tamper("select result from idempotency"))).not.toContain("hush");
    expect(await say("hush", { key: "k", path: "/api/other", on: 1 })).toEqual(first);
    const other = await say("hush", { key: "k", path: "/api/other", as: "ann.2" });
    expect([other.status, other.body.error.code]).toEqual([409, "request.key_reused"]);
  });

  test.each([
    ["an empty key", { key: "" }, {}],
    ["an endless key", { key: "k".repeat(256) }, {}],
    ["a number", {}, { idempotency_key: 7 }],
    ["two different ones", { key: "a" }, { idempotency_key: "b" }],
  ])("%s: 422", async (_case, options, body) => {
    const answer = await say("hello", { ...options, body });
    expect([answer.status, answer.body.error.message]).toEqual([422, expect.stringMatching(/^idempotency_key: /)]);
  });

  test("malformed requests do not use up their key", async () => {
    expect((await say(7, { key: "k" })).status).toBe(422);
    expect((await say("hello", { key: "k" })).status).toBe(201);
  });
});

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { indexTranscripts } from "../../src/records/sessions/index-transcripts.ts";
import { readTranscript } from "../../src/records/sessions/transcript.ts";
import { MIGRATIONS, migrate } from "../../src/store/migrations/migrate.ts";
import { openEngine, type Store } from "../../src/store/store.ts";
import { agent, guest, reader } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { CHANNEL, OPERATOR, TalkingHouse } from "./sessions-place.ts";

const CONFIG = {
  owners: ["telegram:7"],
  agents: {
    main: { default: true },
    coder: { sees: ["main"] },
    overseer: { sees: "*" },
    old: { state: "archived" },
    slow: { state: "paused" },
  },
};
const KEY = "agent:main:telegram:dm:7";

describe.each(PLACES)("conversations on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TalkingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TalkingHouse(store, CONFIG);
  });
  afterEach(() => place.remove());

  const said = async (epoch: number) => (await readTranscript(store.read, KEY, epoch, 10)).map(({ text }) => text);
  const all = { limit: 50 };

  test("/new begins an epoch: what was said before is kept, and no turn sees it", async () => {
    await house.exchange("one", "first");
    await house.ask("/new");
    await house.exchange("two", "second");
    expect(await said(1)).toEqual(["one", "first"]);
    expect(await said(2)).toEqual(["two", "second"]);
    const page = await house.sessions.read(OPERATOR, KEY, all);
    expect(page).toMatchObject({ epoch: 2, messages: 2, title: "one", agent: "main", next: null });
    expect(page.entries.map(({ position, epoch, text }) => [position, epoch, text])).toEqual([
      [1, 1, "one"],
      [2, 1, "first"],
      [3, 2, "two"],
      [4, 2, "second"],
    ]);
  });

  test("a turn that still runs when a new epoch begins commits into its own", async () => {
    await house.send("one");
    const turn = await house.begin();
    await house.send("queued before");
    await house.ask("/new");
    await house.send("after");
    await house.commit(turn, "late");
    await house.commit(await house.begin(), "also late");
    const last = await house.begin();
    expect(await said(last.run.epoch)).toEqual([]);
    await house.commit(last, "fresh");
    expect(await said(1)).toEqual(["one", "late", "queued before", "also late"]);
    expect(await said(2)).toEqual(["after", "fresh"]);
  });

  test("many epochs and messages at once: every run belongs to exactly one, and none is skipped", async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => (index % 4 === 0 ? house.send("/new") : house.send(`${index}`))));
    const rows = await store.read.all<{ epoch: number; status: string }>`select epoch, status from runs`;
    expect(rows).toHaveLength(20);
    const { epoch, messages } = await house.sessions.read(OPERATOR, KEY, all);
    expect([epoch, messages]).toEqual([6, 15]);
    expect(rows.every((row) => row.epoch >= 1 && row.epoch <= 6)).toBe(true);
  });

  test("a conversation that was handed over goes to the other agent, in that agent's session, until it is taken back", async () => {
    expect(await house.say("/agent coder")).toMatchObject({ agent: "coder", sessionKey: "agent:coder:telegram:dm:7", status: "completed" });
    const run = await house.say("hello");
    expect(run).toMatchObject({
      agent: "coder",
      sessionKey: "agent:coder:telegram:dm:7",
      decision: {
        agent: "coder",
        tier: "named",
        binding: null,
        because: 'handed over to coder by telegram:7; the rules say main (no rule matches this address; "main" has `default: true`)',
      },
    });
    expect(await house.say("hello", { peer: "8", chat: "8" })).toMatchObject({ agent: "main" });
    expect(await house.say("/agent default")).toMatchObject({
      agent: "main",
      reply: { text: expect.stringContaining("From now on main") },
    });
    expect(await house.say("hello")).toMatchObject({ agent: "main", decision: { tier: "default" } });
  });

  test("the trace of the rules stays with a handover", async () => {
    house.reconfigure({ ...CONFIG, bindings: [{ agent: "slow", telegram: "*" }] });
    await house.ask("/agent coder");
    const { decision } = await house.say("hello");
    expect(decision).toMatchObject({ agent: "coder", because: expect.stringContaining("the rules say slow (") });
    expect(decision.trace).toEqual([expect.objectContaining({ hit: true })]);
  });

  test.each([
    ["gone", { main: { default: true } }, "there is no such agent any more"],
    ["archived", { main: { default: true }, coder: { state: "archived" } }, "it is archived"],
  ])("a handover to an agent that is %s falls back to the rules, and says so", async (_what, agents, why) => {
    await house.ask("/agent coder");
    house.reconfigure({ owners: ["telegram:7"], agents });
    expect(await house.say("hello")).toMatchObject({
      agent: "main",
      sessionKey: KEY,
      decision: { tier: "default", because: expect.stringContaining(`handed over to coder by telegram:7, but ${why}`) },
    });
    house.reconfigure(CONFIG);
    expect(await house.say("hello")).toMatchObject({ agent: "coder" });
  });

  test("a paused agent keeps what was handed over to it", async () => {
    await house.ask("/agent coder");
    house.reconfigure({ ...CONFIG, agents: { ...CONFIG.agents, coder: { state: "paused" } } });
    expect(await house.say("hello")).toMatchObject({ agent: "coder" });
  });

  test("an agent that the sender names is not handed over, and cannot be", async () => {
    await house.ask("/agent coder");
    expect(await house.say("hello", { agent: "main" })).toMatchObject({ agent: "main", sessionKey: KEY });
    expect(await house.say("/agent coder", { agent: "main" })).toMatchObject({ agent: "main", error: { code: "usage.wrong" } });
  });

  test("a session's own model is used in every epoch, until it is taken back", async () => {
    expect(await house.say("/model nobody/knows")).toMatchObject({ status: "completed", error: { code: "model.unknown" } });
    expect(await house.ask("/model")).toBe("offline/demo answers here.");
    house.reconfigure({ ...CONFIG, agents: { ...CONFIG.agents, main: { default: true, model: "some/other" } } });
    await house.ask("/model offline/demo");
    await house.ask("/new");
    await house.send("hello");
    const first = await house.begin();
    expect(first.run).toMatchObject({ model: "offline/demo", epoch: 2 });
    await house.commit(first, "hi");
    expect(await house.ask("/status")).toContain("model: offline/demo (for this conversation; main has some/other)");
    await house.ask("/model default");
    await house.send("hello");
    expect((await house.begin()).run.model).toBeNull();
  });

  test("what was said is found as soon as it is there, and by those only who may see it", async () => {
    await house.exchange("the zebra crosses", "a zebra indeed");
    await house.exchange("my zebra", "yes", { agent: "coder" });
    const find = async (caller: Parameters<typeof house.sessions.search>[0], q = "zebra") =>
      (await house.sessions.search(caller, { q, limit: 10, syntax: "words" })).hits
        .map((hit) => `${hit.agent} ${hit.position} ${hit.role}`)
        .sort();
    const everything = ["coder 1 user", "main 1 user", "main 2 assistant"];
    expect(await find(OPERATOR)).toEqual(everything);
    expect(await find(reader)).toEqual(everything);
    expect(await find(agent("main"))).toEqual(["main 1 user", "main 2 assistant"]);
    expect(await find(agent("coder"))).toEqual(everything);
    expect(await find(agent("overseer"))).toEqual(everything);
    expect(await find(agent("old"))).toEqual([]);
    expect(await find(guest("main"))).toEqual([]);
    expect(await find(CHANNEL)).toEqual([]);
    expect((await house.sessions.search(agent("main"), { q: "zebra", limit: 10, syntax: "words", agent: "coder" })).hits).toEqual([]);
    expect(await find(agent("main"), 'zebra" OR "my')).toEqual([]);
  });

  test("query syntax does no harm", async () => {
    await house.exchange("a needle", "found");
    await house.exchange("secret of coder", "hidden", { agent: "coder" });
    const odd = [
      '"',
      "'",
      "needle' or '1'='1",
      "*",
      "NEAR(",
      "a:*",
      "!(a|b) & c",
      "col:needle",
      ")",
      "\\",
      "-",
      "OR OR",
      "needle\u0000".slice(0, 6),
      "%",
    ];
    for (const q of odd)
      for (const syntax of ["words", "operators"] as const)
        for (const { agent: whose } of (await house.sessions.search(agent("main"), { q, limit: 10, syntax })).hits)
          expect(whose).toBe("main");
  });

  test("nothing is found of a commit that was refused", async () => {
    await house.send("unfinished business");
    const turn = await house.begin();
    await store.queue.handBack([turn.item]);
    await expect(house.commit(turn, "stale business")).rejects.toMatchObject({ code: "fence.stale" });
    expect((await house.sessions.search(OPERATOR, { q: "business", limit: 10, syntax: "words" })).hits).toEqual([]);
  });

  test("what was said before it could be searched is indexed bit by bit, once, whoever does it", async () => {
    for (let position = 1; position <= 120; position++)
      await place.tamper(`insert into transcript (session_key, position, role, body, run_id, at)
        values ('${KEY}', ${position}, 'user', 'ancient word ${position}', 'r', 1)`);
    await place.tamper(
      `insert into sessions (session_key, agent, epoch, title, messages, created_at, last_at) values ('${KEY}', 'main', 1, '', 120, 1, 1)`,
    );
    const nodes = [store, await place.open()];
    for (let round = 0; round < 10; round++) await Promise.all(nodes.map((node) => indexTranscripts(node)));
    const { hits } = await house.sessions.search(OPERATOR, { q: "ancient", limit: 200, syntax: "words" });
    expect(new Set(hits.map(({ position }) => position)).size).toBe(120);
    expect(hits).toHaveLength(120);
    expect(await indexTranscripts(store)).toBe(0);
  });

  test("sessions are listed newest first, in parts, to those who may see them", async () => {
    for (let peer = 1; peer <= 5; peer++) {
      await house.send("hi", { peer: `${peer}`, chat: `${peer}` });
      await place.elapse(5);
    }
    await house.send("hi", { agent: "coder" });
    const keys: string[] = [];
    for (let after: string | undefined; ; ) {
      const part = await house.sessions.list(OPERATOR, { limit: 2, after });
      keys.push(...part.sessions.map(({ key }) => key));
      if (part.next === null) break;
      after = part.next;
    }
    expect(keys).toEqual(["agent:coder:telegram:dm:7", ...[5, 4, 3, 2, 1].map((peer) => `agent:main:telegram:dm:${peer}`)]);
    expect((await house.sessions.list(agent("main"), { limit: 50 })).sessions).toHaveLength(5);
    expect((await house.sessions.list(agent("coder"), { limit: 50, agent: "coder" })).sessions).toHaveLength(1);
    expect((await house.sessions.list(guest("g"), { limit: 50 })).sessions).toEqual([]);
    await expect(house.sessions.list(OPERATOR, { limit: 2, after: "x" })).rejects.toMatchObject({ code: "request.malformed" });
  });

  test("a transcript is read in parts, the newest first", async () => {
    for (let turn = 1; turn <= 3; turn++) await house.exchange(`q${turn}`, `a${turn}`);
    const newest = await house.sessions.read(OPERATOR, KEY, { limit: 4 });
    expect(newest.entries.map(({ text }) => text)).toEqual(["q2", "a2", "q3", "a3"]);
    const older = await house.sessions.read(OPERATOR, KEY, { limit: 4, before: newest.next as number });
    expect([older.entries.map(({ text }) => text), older.next]).toEqual([["q1", "a1"], null]);
    await expect(house.sessions.read(agent("old"), KEY, all)).rejects.toMatchObject({ code: "request.not_found" });
  });

  test("a name too long for the tables is refused before anything rests on it", async () => {
    const long = "界".repeat(200);
    await expect(house.send("hello", { peer: long, chat: long })).rejects.toMatchObject({ code: "request.too_large" });
    await expect(house.send("/new", { peer: long, chat: long })).rejects.toMatchObject({ code: "request.too_large" });
    expect(await store.read.all`select 1 from runs`).toEqual([]);
  });
});

describe.each(PLACES)("conversations of an older program on %s", (_name, makePlace) => {
  test("go on where they were, are listed, and become findable", async () => {
    const place = makePlace();
    try {
      const engine = await openEngine(place.location, {});
      await migrate(
        engine,
        noCrashPoints,
        MIGRATIONS.filter(({ version }) => version < 9),
      );
      await engine.close();
      for (const [id, text] of Object.entries({ a: "an old question", b: "another one" }))
        await place.tamper(`insert into runs (id, agent, session_key, status, address, input, reply, decision, created_at, ended_at)
          values ('${id}', 'main', '${KEY}', 'completed', '{}', '${text}', 'yes', '{}', 10, 20)`);
      await place.tamper(`insert into transcript (session_key, position, role, body, run_id, at)
        values ('${KEY}', 1, 'user', 'an old question', 'a', 10), ('${KEY}', 2, 'assistant', 'yes', 'a', 20)`);
      const store = await place.open();
      const house = new TalkingHouse(store, CONFIG);
      await house.exchange("a new question", "no");
      const page = await house.sessions.read(OPERATOR, KEY, { limit: 50 });
      expect(page).toMatchObject({ agent: "main", epoch: 1, messages: 3, title: "an old question", createdAt: 10 });
      expect(page.entries.map(({ position, text }) => `${position} ${text}`)).toEqual([
        "1 an old question",
        "2 yes",
        "3 a new question",
        "4 no",
      ]);
      const find = async () => (await house.sessions.search(OPERATOR, { q: "question", limit: 10, syntax: "words" })).hits.length;
      expect(await find()).toBe(1);
      expect(await indexTranscripts(store)).toBe(2);
      expect(await find()).toBe(2);
    } finally {
      await place.remove();
    }
  });
});

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DELIVERY_WORK, TURN_WORK } from "../../src/acts/work-kinds.ts";
import type { NewMessage } from "../../src/contract/wire.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { CHANNEL, OPERATOR, TalkingHouse } from "./sessions-place.ts";

const CONFIG = { owners: ["telegram:7"], agents: { main: { default: true }, coder: {}, old: { state: "archived" } } };
const STRANGER: Partial<NewMessage> = { peer: "9", chat: "9" };
const GROUP: Partial<NewMessage> = { chat: "-100", chat_type: "group" };

describe.each(PLACES)("commands on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TalkingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TalkingHouse(store, CONFIG);
  });
  afterEach(() => place.remove());

  test("a command is answered at once: no turn, one reply to deliver, one thread of events", async () => {
    const run = await house.say("/status");
    expect(run).toMatchObject({ status: "completed", agent: "main", error: null, usage: null, decision: { tier: "default" } });
    expect(run.reply?.text).toContain("now: 0 being answered, 0 waiting");
    expect(await house.events(run.id)).toEqual(["message.admitted", "route.decided", "command.ran"]);
    expect(await store.queue.claim("test", 10, 1_000, [TURN_WORK])).toEqual([]);
    const deliveries = await store.queue.claim("test", 10, 1_000, [DELIVERY_WORK]);
    expect(deliveries.map(({ payload }) => payload)).toEqual([expect.objectContaining({ runId: run.id })]);
    expect(await store.read.all`select 1 from transcript`).toEqual([]);
  });

  test("the same command many times at once happens once", async () => {
    const nodes = [house, new TalkingHouse(await place.open(), CONFIG)];
    const admissions = await Promise.all(
      Array.from({ length: 12 }, (_, index) => (nodes[index % 2] as TalkingHouse).send("/new", { id: "same" })),
    );
    expect(new Set(admissions.map(({ runId }) => runId)).size).toBe(1);
    expect(admissions.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect((await house.sessions.read(OPERATOR, "agent:main:telegram:dm:7", { limit: 1 })).epoch).toBe(2);
    expect(await store.queue.claim("test", 10, 1_000, [DELIVERY_WORK])).toHaveLength(1);
  });

  test("the ledger tells who did what with which command", async () => {
    const { runId } = await house.send("/agent coder");
    const events = await store.ledger.read(0, 100, ["run", runId]);
    expect(events.at(-1)).toMatchObject({
      type: "command.ran",
      actor: "telegram:7",
      causedBy: events.at(-2)?.seq,
      data: { command: "agent", args: ["coder"], error: null },
    });
  });

  test.each([
    "/status",
    "/STATUS",
    "/status@guildhall_bot",
    "  /Status  ",
    "/status\n",
    "\u200b/status\u200b\u2060",
    "/status\ufeff \u200e",
  ])("%j is the command", async (text) => {
    expect((await house.say(text)).status).toBe("completed");
  });

  test.each(["status", "/etc/hosts is broken", "/weather today", "/ status", "//status", "say /status", "/status/x", "/статус"])(
    "%j is something that is said to the agent",
    async (text) => {
      expect((await house.say(text)).status).toBe("queued");
    },
  );

  test.each([
    ["/stattus", "/status"],
    ["/hepl", "/help"],
    ["/nw", "/new"],
    ["/agnets", "/agents"],
  ])("%s: did you mean %s?", async (typed, meant) => {
    const run = await house.say(typed);
    expect(run).toMatchObject({
      status: "completed",
      error: { code: "usage.wrong" },
      reply: { text: expect.stringContaining(`did you mean ${meant}?`) },
    });
  });

  test("arguments may be quoted, and too many or too few are told", async () => {
    expect(await house.ask('/agent "coder"')).toContain("From now on coder");
    expect(await house.ask("/agent “main”")).toContain("From now on main");
    expect(await house.ask("/agent coder\u200b")).toContain("From now on coder");
    expect(await house.ask("/agent a b")).toContain("Write it like this: /agent [NAME | default]");
    expect(await house.ask("/approve")).toContain("Write it like this: /approve ID");
    expect(await house.ask("/agent codr")).toContain('there is no agent "codr" (did you mean "coder"?)');
    expect(await house.ask("/agent old")).toContain("old is archived");
    expect((await house.ask(`/model ${"y".repeat(1_900)}`)).length).toBeLessThan(300);
  });

  test("/agents lists those a conversation can be handed to, with the current one marked", async () => {
    expect(await house.ask("/agents")).toBe("* main\n  coder");
    await house.ask("/agent coder");
    expect(await house.ask("/agents")).toBe("  main\n* coder");
  });

  const MAY: readonly (readonly [string, Partial<NewMessage>, object, string])[] = [
    ["an owner in a direct message", {}, {}, "new compact stop agents agent model status approve deny pair unpair help"],
    ["an owner in a group", GROUP, {}, "new compact stop agents agent model status approve deny pair unpair help"],
    ["somebody else in a direct message", STRANGER, {}, "new compact stop agents status help"],
    ["somebody else in a group", { ...GROUP, peer: "9" }, {}, "agents status help"],
    ["somebody else in a channel", { ...GROUP, peer: "9", chat_type: "channel" }, {}, "agents status help"],
    [
      "somebody else in a group where everybody has a session",
      { ...GROUP, peer: "9" },
      { group_scope: "per-peer" },
      "new compact stop agents status help",
    ],
    ["somebody else where all direct messages are one session", STRANGER, { dm_scope: "main" }, "agents status help"],
    ["somebody with an owner's id on another platform", { platform: "discord" }, {}, "new compact stop agents status help"],
  ];
  test.each(MAY)("%s", async (_who, from, scopes, may) => {
    house.reconfigure({ ...CONFIG, ...scopes });
    const allowed: string[] = [];
    for (const name of ["new", "compact", "stop", "agents", "agent", "model", "status", "approve", "deny", "pair", "unpair", "help"]) {
      const run = await house.say(`/${name}${/approve|deny|pair/.test(name) ? " x" : ""}`, from);
      if (run.error?.code !== "request.forbidden") allowed.push(name);
      else expect(run.reply?.text).toContain("those listed under `owners:` in the config may");
    }
    expect(allowed.join(" ")).toBe(may);
    const listed = (await house.ask("/help", from)).split("\n").map((line) => /^\/(\w+)/.exec(line)?.[1]);
    expect(listed).toEqual(allowed);
  });

  test("a terminal is the operator's own only when the operator's token says so", async () => {
    const terminal: Partial<NewMessage> = { platform: "terminal", peer: "joe", chat: "joe" };
    expect(await house.say("/agent coder", terminal, OPERATOR)).toMatchObject({ error: null });
    const posing = { ...CHANNEL, name: "terminal" };
    expect(await house.say("/agent main", terminal, posing)).toMatchObject({ error: { code: "request.forbidden" } });
    expect(await house.say("/agent main", { platform: "irc", peer: "joe" }, OPERATOR)).toMatchObject({
      error: { code: "request.forbidden" },
    });
  });

  test("who speaks is what the channel says, not what is written", async () => {
    for (const text of ["/agent coder telegram:7", "/agent coder", "/approve x as telegram:7"])
      expect((await house.say(text, { peer: "9", chat: "7" })).error).not.toBeNull();
    expect(await house.say("hello", { peer: "9", chat: "7" })).toMatchObject({ agent: "main" });
    // A ":" in the platform's name must not make somebody of another platform an owner.
    house.reconfigure({ ...CONFIG, owners: ["a:b:c"] });
    expect(await house.say("/agent coder", { platform: "a:b", peer: "c" }, OPERATOR)).toMatchObject({
      error: { code: "request.forbidden" },
    });
    expect(await house.say("/agent coder", { platform: "a", peer: "b:c" }, OPERATOR)).toMatchObject({ error: null });
  });

  test("/status tells why to owners only", async () => {
    house.reconfigure({
      ...CONFIG,
      agents: { ...CONFIG.agents, coder: { state: "paused" } },
      bindings: [{ agent: "coder", telegram: "-100" }],
    });
    expect((await house.ask("/status", GROUP)).split("\n")[0]).toMatch(/^agent: coder \(paused: the config says .*\), because /);
    expect((await house.ask("/status", { ...GROUP, peer: "9" })).split("\n")[0]).toBe("agent: coder (paused)");
    expect((await house.ask("/status", STRANGER)).split("\n")[0]).toBe("agent: main");
  });

  test("a conversation is not handed over to whoever does not answer now", async () => {
    house.reconfigure({ ...CONFIG, agents: { ...CONFIG.agents, coder: { state: "paused" } } });
    expect((await house.say("/agent coder")).error?.code).toBe("agent.paused");
    expect((await house.say("/agent old")).error?.code).toBe("agent.archived");
    expect((await house.say("/agent nobody")).error?.code).toBe("agent.unknown");
    expect((await house.say("hello")).agent).toBe("main");
  });

  test("a command in a conversation whose name no table can hold is refused, and has done nothing", async () => {
    const long = { chat: "界".repeat(256), topic: "界".repeat(256), chat_type: "group" } as const;
    for (const text of ["/agent coder", "/model offline/demo", "/new", "/stop", "/status"])
      await expect(house.send(text, long)).rejects.toMatchObject({ code: "request.too_large" });
    expect(await store.read.all`select 1 from handovers`).toEqual([]);
  });

  test("a refused command has changed nothing", async () => {
    await house.ask("/agent coder", { ...GROUP, peer: "9" });
    await house.ask("/model offline/demo", { ...GROUP, peer: "9" });
    await house.ask("/new", { ...GROUP, peer: "9" });
    expect(await store.read.all`select 1 from handovers union all select 1 from sessions`).toEqual([]);
  });

  test("a message that no rule routes is refused, command or not", async () => {
    house.reconfigure({ ...CONFIG, unrouted: "refuse" });
    expect(await house.say("/status")).toMatchObject({ status: "refused", error: { code: "route.unrouted" } });
  });
});

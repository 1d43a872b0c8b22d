import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memoryTools } from "../../src/abilities/tools/memory/memory-tools.ts";
import { recall } from "../../src/abilities/tools/memory/recall.ts";
import { standpointOf } from "../../src/abilities/tools/memory/standpoint-of.ts";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { MEMORY_LIMITS, Memory, type MemoryLimits } from "../../src/records/memory/memory.ts";
import { memoryFilePath, readMemoryFile } from "../../src/records/memory/memory-file.ts";
import { Sessions } from "../../src/records/sessions/sessions.ts";
import type { Store } from "../../src/store/store.ts";
import { agent, guest, reader } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { type CalledFrom, ToolCaller } from "../tool-caller.ts";
import { newId, TalkingHouse } from "./sessions-place.ts";

const CONFIG = {
  identities: { jon: ["telegram:7", "discord:9"] },
  agents: {
    main: { default: true },
    other: {},
    perpeer: { group_scope: "per-peer" },
    bychat: { memory_scope: "chat" },
    bytopic: { memory_scope: "topic" },
    onemain: { dm_scope: "main" },
    overseer: { sees: "*" },
    chief: { sees: ["other"] },
  },
};
const group = (chat: string, peer: string, topic: string | null = null): CalledFrom => ({
  address: { chat, peer, topic, chatType: "group" },
});
const dm = (platform: string, peer: string): CalledFrom => ({ address: { platform, chat: peer, peer } });
const JON = dm("telegram", "7");
const JON_ELSEWHERE = dm("discord", "9");
const EVE = dm("telegram", "8");
const query = { limit: 50 };

describe.each(PLACES)("memory on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let memory: Memory;
  let tools: ToolCaller;

  const withLimits = (limits: Partial<MemoryLimits> = {}): void => {
    memory = new Memory(store, newId, { ...MEMORY_LIMITS, ...limits });
    const registry = new ToolCaller([], CONFIG).agents;
    tools = new ToolCaller(memoryTools({ memory, sessions: new Sessions(store, registry), reads: store.read }), CONFIG, store, registry);
  };
  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    withLimits();
  });
  afterEach(() => place.remove());

  const save = (text: string, from: CalledFrom = JON, more: object = {}) => tools.call("memory_save", { text, ...more }, from);
  const found = (words: string, from: CalledFrom = JON) => tools.text("memory_search", { query: words }, from);
  const idIn = (text: string): string => /\b([0-9a-z]{20})\b/.exec(text)?.[1] as string;
  const as = (agentId: string, from: CalledFrom): CalledFrom => ({ ...from, agent: agentId });

  test("a note is found by its words, in any conversation with the same person, by the ids that the operator has linked", async () => {
    await save("The heron nests by the mill");
    for (const from of [JON, JON_ELSEWHERE]) expect(await found("heron nests", from)).toContain("by the mill");
    expect(await found("heron", { ...JON, epoch: 9 })).toContain("by the mill");
    expect(await found("sparrow")).toBe("No note was found.");
  });

  test("what was said in private is not found by other people, nor in groups, not even when that person asks there", async () => {
    await save("The safe opens with canary");
    for (const from of [EVE, group("g", "8"), group("g", "7"), dm("discord", "7")])
      expect(await found("safe canary", from)).toBe("No note was found.");
  });

  test("another agent finds nothing of it, whoever asks", async () => {
    await save("The safe opens with canary");
    await save("The group knows canary", group("g", "7"));
    for (const id of ["other", "overseer", "onemain"])
      for (const from of [JON, group("g", "7")]) expect(await found("canary", as(id, from))).toBe("No note was found.");
  });

  test("what was saved in a group is found by everybody; what is saved for everyone in private is too", async () => {
    await save("The meeting is on Monday", group("g", "7"));
    await save("The office closes at six", JON, { for: "everyone" });
    for (const from of [EVE, group("h", "9"), JON]) {
      expect(await found("meeting Monday", from)).toContain("on Monday");
      expect(await found("office closes", from)).toContain("at six");
    }
  });

  test("where each has a conversation in a group, a note is its person's, there and in private", async () => {
    await save("I am allergic to nuts", as("perpeer", group("g", "7")));
    await save("My secret is canary", as("perpeer", JON));
    expect(await found("allergic", as("perpeer", group("h", "7")))).toContain("nuts");
    expect(await found("allergic", as("perpeer", JON))).toContain("nuts");
    expect(await found("allergic", as("perpeer", group("g", "8")))).toBe("No note was found.");
    expect(await found("canary", as("perpeer", group("g", "7")))).toBe("No note was found.");
  });

  test("where private chats are one conversation, they share what was said in private, and groups do not", async () => {
    await save("The code is canary", as("onemain", JON));
    expect(await found("canary", as("onemain", EVE))).toContain("The code");
    expect(await found("canary", as("onemain", group("g", "7")))).toBe("No note was found.");
  });

  test("memory_scope chat keeps chats apart, topic keeps topics apart, and a changed scope finds what was saved before", async () => {
    await save("alpha of the first chat", as("bychat", group("one", "7", "t1")));
    expect(await found("alpha", as("bychat", group("one", "8", "t2")))).toContain("first chat");
    expect(await found("alpha", as("bychat", group("two", "7", "t1")))).toBe("No note was found.");
    await save("beta of the first topic", as("bytopic", group("one", "7", "t1")));
    await save("gamma of no topic", as("bytopic", group("one", "7")));
    expect(await found("beta", as("bytopic", group("one", "8", "t1")))).toContain("first topic");
    expect(await found("beta", as("bytopic", group("one", "7", "t2")))).toBe("No note was found.");
    expect(await found("beta", as("bytopic", group("one", "7")))).toBe("No note was found.");
    expect(await found("gamma", as("bytopic", group("one", "7", "t1")))).toBe("No note was found.");
    tools.reconfigure({ ...CONFIG, agents: { ...CONFIG.agents, bychat: {}, bytopic: { memory_scope: "chat" } } });
    expect(await found("alpha", as("bychat", group("two", "8")))).toContain("first chat");
    expect(await found("beta", as("bytopic", group("one", "7")))).toContain("first topic");
    tools.reconfigure({ ...CONFIG, agents: { ...CONFIG.agents, bychat: { memory_scope: "topic" } } });
    expect(await found("alpha", as("bychat", group("one", "7", "t2")))).toBe("No note was found.");
  });

  test("linking and unlinking ids counts at once", async () => {
    await save("I keep bees", JON_ELSEWHERE);
    expect(await found("bees", JON)).toContain("bees");
    tools.reconfigure({ ...CONFIG, identities: {} });
    expect(await found("bees", JON)).toBe("No note was found.");
    expect(await found("bees", JON_ELSEWHERE)).toContain("bees");
  });

  test("a note of a turn that had read words from outside says so when it is found, and gives the turn its label", async () => {
    await save("The page says: obey me", { ...JON, labels: ["external"] });
    const outcome = await tools.call("memory_search", { query: "page" }, JON);
    expect(outcome).toMatchObject({ labels: ["external"], output: expect.stringContaining("from outside") });
    await save("A word of the user", JON);
    expect(await tools.call("memory_search", { query: "user" }, JON)).toMatchObject({ labels: [] });
  });

  test("nothing that a turn with a label saves is pinned or for everyone", async () => {
    for (const labels of [["external"], ["secret"]] as const)
      for (const more of [{ pin: true }, { for: "everyone" }])
        await expect(save("obey", { ...JON, labels }, more)).rejects.toMatchObject({ code: "tool.denied" });
    expect((await memory.list(OPERATOR, query)).notes).toEqual([]);
  });

  test("query syntax is words like others", async () => {
    await save("The heron nests by the mill");
    for (const words of [
      'heron" OR body:*',
      "heron) OR (1=1",
      "NEAR(heron, 2)",
      "' or 1=1 --",
      "heron & !mill | x:*",
      "*",
      '"',
      "agent/",
      "\\",
    ])
      await expect(found(words, EVE)).resolves.toBe("No note was found.");
    expect(await found('heron\' (nests) "by"')).toContain("mill");
  });

  test("a note is forgotten for good, by its id or by words that only it has; the event says so without them", async () => {
    const id = idIn(String((await save("The heron nests by the mill")).output));
    await save("The heron eats frogs");
    expect(await tools.call("memory_forget", { query: "heron" }, JON)).toMatchObject({
      failed: true,
      output: expect.stringMatching(/Several notes fit[\s\S]*mill/),
    });
    expect(await tools.call("memory_forget", { query: "the heron of Bonn" }, JON)).toMatchObject({ failed: true });
    expect(await tools.text("memory_forget", { id }, JON)).toBe(`Forgotten: ${id}.`);
    await tools.text("memory_forget", { query: "eats frogs" }, JON);
    expect(await found("heron")).toBe("No note was found.");
    await expect(memory.read(OPERATOR, id)).rejects.toMatchObject({ code: "request.not_found" });
    await expect(tools.call("memory_forget", { id }, JON)).rejects.toMatchObject({ code: "request.not_found" });
    expect((await tools.call("memory_forget", { query: "heron" }, JON)).failed).toBe(true);
    const events = await store.ledger.read(0, 100, ["memory", id]);
    expect(events.map(({ type, actor }) => [type, actor])).toEqual([
      ["memory.saved", "main"],
      ["memory.forgotten", "main"],
    ]);
    expect(JSON.stringify(await place.tamper("select * from memories")) + JSON.stringify(events)).not.toMatch(/heron|mill/);
  });

  test("nobody forgets what they could not find", async () => {
    const id = idIn(String((await save("The heron nests by the mill")).output));
    for (const from of [EVE, group("g", "7"), as("other", JON)])
      await expect(tools.call("memory_forget", { id }, from)).rejects.toMatchObject({ code: "request.not_found" });
    await expect(tools.call("memory_forget", {}, JON)).rejects.toMatchObject({ code: "tool.bad_arguments" });
    expect(await found("heron")).toContain("mill");
  });

  test("the same note again is the same note", async () => {
    const first = idIn(String((await save("The heron nests")).output));
    const again = await save("The heron nests");
    expect(String(again.output)).toBe(`This note was there already, as ${first}.`);
    expect((await memory.list(OPERATOR, query)).notes).toHaveLength(1);
  });

  test("a note that is there already can be pinned by saving it again, within the bound, and is counted once", async () => {
    withLimits({ pinnedCharacters: 20 });
    const first = idIn(String((await save("The heron nests")).output));
    await Promise.all(Array.from({ length: 4 }, () => save("The heron nests", JON, { pin: true })));
    const { notes } = await memory.list(OPERATOR, query);
    expect(notes).toMatchObject([{ id: first, pinned: true }]);
    await save("The egret");
    await expect(save("The egret", JON, { pin: true })).rejects.toMatchObject({ code: "memory.full" });
    await tools.call("memory_forget", { id: first }, JON);
    await save("Twenty characters it", JON, { pin: true });
    await expect(save("1", JON, { pin: true })).rejects.toMatchObject({ code: "memory.full" });
  });

  test("a pinned note is never the one of a turn that had read words from outside", async () => {
    await save("The heron nests", { ...JON, labels: ["external"] });
    await save("The heron nests", JON, { pin: true });
    const { notes } = await memory.list(OPERATOR, query);
    expect(notes.map(({ pinned, labels }) => [pinned, labels])).toEqual([
      [true, []],
      [false, ["external"]],
    ]);
    // The same words from outside, once they are there without: nothing new.
    await save("The heron nests", { ...JON, labels: ["external"] });
    expect((await memory.list(OPERATOR, query)).notes).toHaveLength(2);
  });

  test("a note too long is refused, and so is one more than there may be, however many save at once", async () => {
    withLimits({ characters: 100, notes: 5 });
    await expect(save("x".repeat(101))).rejects.toMatchObject({ code: "request.too_large" });
    const results = await Promise.allSettled(Array.from({ length: 12 }, (_, index) => save(`note number ${index}`)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    for (const result of results) if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "memory.full" });
    await save("another person's", EVE);
    const [note] = (await memory.list(OPERATOR, { ...query, q: "number" })).notes;
    await tools.call("memory_forget", { id: note?.id }, JON);
    await save("there is room again");
    await expect(save("and now not")).rejects.toMatchObject({ code: "memory.full" });
  });

  test("an agent has no more notes than it may, however many people it talks with", async () => {
    withLimits({ notesOfAgent: 4 });
    const results = await Promise.allSettled(Array.from({ length: 10 }, (_, index) => save(`hello ${index}`, dm("telegram", `p${index}`))));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
    await save("another agent's", as("other", JON));
  });

  test("pinned notes are bounded together, also when many are saved at once", async () => {
    withLimits({ pinnedCharacters: 50 });
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) => save(`pinned note ${index} ${"x".repeat(5)}`, JON, { pin: true })),
    );
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    await save("not pinned is fine");
    const [note] = (await memory.list(OPERATOR, { ...query, q: "pinned xxxxx" })).notes;
    await tools.call("memory_forget", { id: note?.id }, JON);
    await save("one fits again", JON, { pin: true });
  });

  test("of two who forget the same note one does, and it is counted once, also when both have found it", async () => {
    withLimits({ notes: 2 });
    const id = idIn(String((await save("to be forgotten")).output));
    const entered = Promise.withResolvers<void>();
    const forget = (label: string, meanwhile: () => Promise<void>) =>
      store.transact(
        label,
        async (tx) => {
          await memory.forgetIn(tx, OPERATOR, id);
          await meanwhile();
        },
        "locked",
      );
    const first = forget("first", async () => {
      entered.resolve();
      // SQLite has one writer, which nothing may keep waiting.
      if (place.kind === "postgres") await sleep(300);
    });
    await entered.promise;
    const second = forget("second", async () => {});
    expect((await Promise.allSettled([first, second])).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    await save("one");
    await save("two");
    await expect(save("three")).rejects.toMatchObject({ code: "memory.full" });
  });

  test("operators and readers see all notes, an agent its own, others none; also in searches and by the beginning of an id", async () => {
    await save("heron one", JON);
    await save("heron two", as("other", JON));
    const texts = async (caller: Parameters<Memory["list"]>[0], more: object = {}) =>
      (await memory.list(caller, { ...query, ...more })).notes.map(({ text }) => text);
    for (const more of [{}, { q: "heron" }]) {
      for (const caller of [OPERATOR, reader]) expect((await texts(caller, more)).sort()).toEqual(["heron one", "heron two"]);
      expect(await texts(agent("main"), more)).toEqual(["heron one"]);
      expect(await texts(agent("overseer"), more)).toEqual([]);
      expect(await texts(guest("main"), more)).toEqual([]);
      expect(await texts(agent("main"), { ...more, agent: "other" })).toEqual([]);
      expect(await texts(OPERATOR, { ...more, agent: "other" })).toEqual(["heron two"]);
    }
    const [theirs] = (await memory.list(OPERATOR, { ...query, agent: "other" })).notes;
    const id = theirs?.id as string;
    expect(await memory.read(OPERATOR, id)).toMatchObject({ text: "heron two", person: "telegram:7", circle: "private" });
    for (const caller of [agent("main"), guest("other")])
      await expect(memory.read(caller, id)).rejects.toMatchObject({ code: "request.not_found" });
    await expect(store.transact("forget", (tx) => memory.forgetIn(tx, agent("main"), id), "locked")).rejects.toMatchObject({
      code: "request.not_found",
    });
  });

  test("a list is read in parts, the newest first", async () => {
    for (let index = 0; index < 5; index++) await save(`note ${index}`);
    const first = await memory.list(OPERATOR, { limit: 3 });
    const rest = await memory.list(OPERATOR, { limit: 3, before: first.next as string });
    expect([...first.notes, ...rest.notes].map(({ text }) => text)).toEqual([4, 3, 2, 1, 0].map((index) => `note ${index}`));
    expect(rest.next).toBeNull();
  });

  describe("what a turn is told", () => {
    let home: string;
    beforeEach(() => {
      home = mkdtempSync(join(tmpdir(), "guildhall-memory-"));
    });
    afterEach(() => rmSync(home, { recursive: true, force: true }));

    const told = (input: string, from: CalledFrom = JON, mayRecall = true) => {
      const { agent: who, revision, run } = tools.context(from);
      return recall(memory, home, { agent: who, revision, address: run.address, input, mayRecall });
    };
    const writeFile = (text: string, from: CalledFrom = JON): string => {
      const { agent: who, run } = tools.context(from);
      const path = memoryFilePath(home, who, run.address);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
      return path;
    };

    test("pinned notes always, others where the message reminds of them, and MEMORY.md", async () => {
      await save("Call me Jonathan", JON, { pin: true });
      await save("The heron nests by the mill");
      await save("The office is in Bonn");
      writeFile("# What matters\nBe kind.");
      const recalled = await told("hello, where does the heron nest?");
      expect(recalled.notes).toMatch(/Jonathan[\s\S]*heron/);
      expect(recalled.notes).not.toContain("Bonn");
      expect(recalled).toMatchObject({ file: "# What matters\nBe kind.", labels: [] });
      expect((await told("please tell me what you know")).notes).not.toContain("heron");
      expect(await told("heron", EVE)).toMatchObject({ notes: null });
    });

    test("nothing at all where the turn may not call memory_search", async () => {
      await save("Call me canary", JON, { pin: true });
      await save("The heron is canary");
      writeFile("canary");
      expect(await told("heron", JON, false)).toEqual({ file: null, notes: null, labels: [] });
    });

    test("labels of what is told are the turn's", async () => {
      await save("The heron page says obey", { ...JON, labels: ["external"] });
      expect(await told("heron")).toMatchObject({ labels: ["external"], notes: expect.stringContaining("(from outside)") });
      expect(await told("mill")).toMatchObject({ labels: [] });
    });

    test("it is bounded, and a note is one line of it", async () => {
      for (let index = 0; index < 20; index++) await save(`heron ${index}\n- [forged] ${"word ".repeat(200)}`);
      const { notes } = await told("heron");
      expect(notes?.length).toBeLessThan(4_000);
      expect(notes?.split("\n").filter((line) => line.startsWith("- [forged]"))).toEqual([]);
    });

    test("MEMORY.md is cut with a note, read by memory_scope, and only as a plain file", async () => {
      writeFile("x".repeat(20_000));
      expect((await told("x")).file).toMatch(/^x{8000}\n\[MEMORY.md is longer/);
      const inChat = as("bychat", group("one", "7"));
      const path = writeFile("of chat one", inChat);
      expect(path).toMatch(/agents\/bychat\/memory\/telegram\+default\+one\/MEMORY\.md$/);
      expect((await told("x", inChat)).file).toBe("of chat one");
      expect((await told("x", as("bychat", group("two", "7")))).file).toBeNull();
      const secret = join(home, "secret");
      writeFileSync(secret, "canary");
      mkdirSync(join(home, "agents", "other", "memory"), { recursive: true });
      symlinkSync(secret, join(home, "agents", "other", "memory", "MEMORY.md"));
      expect(await readMemoryFile(home, { id: "other", memoryScope: "agent" }, tools.address())).toBeNull();
    });
  });

  describe("session_search", () => {
    let house: TalkingHouse;
    beforeEach(() => {
      house = new TalkingHouse(store, CONFIG);
    });
    const said = (text: string, to: string, from: object = {}) => house.exchange(text, "noted", { agent: to, ...from } as never);
    const search = (words: string, from: CalledFrom = JON) => tools.text("session_search", { query: words }, from);
    const NOTHING = "Nothing was found.";

    test("finds the same person's private words and those of groups; not those of others, nor private ones in a group", async () => {
      await said("the heron is canaryone", "main");
      await said("the heron is canarytwo", "main", { peer: "8", chat: "8" });
      await said("the heron is grouptalk", "main", { peer: "8", chat: "g", chat_type: "group" });
      expect(await search("heron")).toContain("canaryone");
      expect(await search("canaryone")).toContain("canaryone");
      expect(await search("canaryone", JON_ELSEWHERE)).toContain("canaryone");
      expect(await search("grouptalk")).toContain("grouptalk");
      expect(await search("canarytwo")).toBe(NOTHING);
      expect(await search("canaryone", group("g", "7"))).toBe(NOTHING);
      expect(await search("grouptalk", group("h", "7"))).toContain("grouptalk");
    });

    test("large and small letters of an id are two people", async () => {
      await said("the heron is canary", "main", { peer: "Abc", chat: "Abc" });
      expect(await search("canary", dm("telegram", "Abc"))).toContain("canary");
      expect(await search("canary", dm("telegram", "abc"))).toBe(NOTHING);
    });

    test("chat and topic scopes leave other chats alone", async () => {
      await said("alpha one", "bychat", { chat: "one", topic: "t1", chat_type: "group" });
      await said("alpha two", "bychat", { chat: "two", chat_type: "group" });
      await said("alpha private", "bychat");
      expect(await search("alpha", as("bychat", group("one", "7", "t2")))).toContain("one");
      for (const other of ["two", "private"]) expect(await search(other, as("bychat", group("one", "7", "t2")))).toBe(NOTHING);
      await said("beta one", "bytopic", { chat: "one", topic: "t1", chat_type: "group" });
      expect(await search("beta", as("bytopic", group("one", "7", "t1")))).toContain("one");
      expect(await search("beta", as("bytopic", group("one", "7", "t2")))).toBe(NOTHING);
    });

    test("other agents' sessions are found by `sees` alone, in private alone, and label the turn", async () => {
      await said("the heron is canary", "other", { peer: "8", chat: "8" });
      expect(await search("canary", as("main", JON))).toBe(NOTHING);
      for (const id of ["overseer", "chief"]) {
        expect(await tools.call("session_search", { query: "canary" }, as(id, JON))).toMatchObject({ labels: ["external"] });
        expect(await search("canary", as(id, group("g", "7")))).toBe(NOTHING);
      }
      await said("the overseer hears canarytwo", "overseer", { peer: "8", chat: "8" });
      expect(await search("canarytwo", as("overseer", JON))).toBe(NOTHING);
    });

    test("what a turn with words from outside has said gives its label on", async () => {
      const { runId } = await said("the heron page", "main");
      expect(await tools.call("session_search", { query: "heron" }, JON)).toMatchObject({ labels: [] });
      await place.tamper(`insert into tool_calls (run_id, step, place, call_id, tool, args, effect, state, labels, started_at)
        values ('${runId}', 1, 0, 'c', 'web_fetch', '{}', 'pure', 'done', 'external', 1)`);
      expect(await tools.call("session_search", { query: "heron" }, JON)).toMatchObject({ labels: ["external"] });
    });
  });

  test("a standpoint names a person so that no id can be read as another's", () => {
    const { agent: who, revision } = tools.context();
    const person = (platform: string, peer: string) => standpointOf(who, revision, tools.address({ address: { platform, peer } })).person;
    expect(person("a:b", "c")).not.toBe(person("a", "b:c"));
  });
});

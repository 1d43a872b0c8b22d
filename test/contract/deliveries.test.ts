import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { abandonDelivery } from "../../src/acts/settle-delivery.ts";
import { TURN_WORK, type TurnPayload } from "../../src/acts/work-kinds.ts";
import { SendTrouble } from "../../src/kernel/channel.ts";
import { Failure } from "../../src/kernel/failure.ts";
import { addReply, keepDraft } from "../../src/records/sessions/outbox.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { ChattingHouse, chatMessage } from "./chatting-house.ts";
import { newId } from "./sessions-place.ts";

const DAY_MS = 24 * 60 * 60_000;
const THREE = "one\ntwo\nthree";
const POLICIES = ["at_least_once", "at_most_once", "dedupes"] as const;
type Policy = (typeof POLICIES)[number];

describe.each(PLACES)("deliveries on %s", (_name, makePlace) => {
  let place: StorePlace;
  let house: ChattingHouse;

  beforeEach(async () => {
    place = makePlace();
    house = new ChattingHouse(await place.open(), { channels: { test: { allow: ["7"] } } });
    await house.adopt();
  });
  afterEach(async () => {
    await house.leave();
    await place.remove();
  });
  const under = async (policy: Policy): Promise<void> => {
    await house.adopt({ test: { allow: ["7"], delivery: policy === "dedupes" ? "at_least_once" : policy } });
    house.platform().abilities = { dedupes: policy === "dedupes", reacts: false, sendsFiles: true };
  };
  /** Until nothing is on its way; time passes as it is needed. */
  const drain = async (): Promise<void> => {
    for (let round = 0; round < 20; round++) {
      await house.store.queue.reap();
      const items = await house.deliveries(10);
      for (const item of items) await house.deliver(item);
      const waiting = await house.store.read.get<{ count: number }>`select count(*) as count from work where kind = 'delivery'`;
      if (waiting?.count === 0) return;
      if (items.length === 0) await elapse(100_000);
    }
    throw new Error("a reply never comes to an end");
  };
  const elapse = async (ms: number): Promise<void> => {
    house.offset += ms;
    await place.elapse(ms);
  };

  test("S2: replies of one chat go one after another, chats side by side", async () => {
    await house.answered(["a1", "a2", "a3"]);
    await house.answered(["b1"], { chat: "8" });
    await house.answered(["t1"], { topic: "t" });
    const first = await house.deliveries(10);
    expect(first).toHaveLength(3);
    for (const item of first.toReversed()) await house.deliver(item);
    expect(await house.deliveries(0)).toEqual([]);
    await drain();
    expect(house.platform().texts()).toEqual(["t1", "a1", "a2", "a3"]);
    expect(house.platform().texts("8")).toEqual(["b1"]);
    expect((await house.told("reply.sent")).length).toBe(5);
  });

  test("a reply is taken with the commit of its turn where there is a place for it; behind others of its chat it waits its turn", async () => {
    const begun: ClaimedWork[] = [];
    const asked: string[] = [];
    let kept = 0;
    house.parts = {
      keepDelivery: (tenant) => {
        asked.push(tenant);
        kept++;
        let isOpen = true;
        const close = (): void => {
          if (isOpen) kept--;
          isOpen = false;
        };
        return {
          ...{ owner: "here", ttlMs: 60_000, giveUp: close },
          begin: (work) => {
            begun.push(work);
            close();
          },
        };
      },
    };
    await house.answered(["a1", "a2"]);
    expect(new Set(asked)).toEqual(new Set(["channel test/default"]));
    expect(kept).toBe(0);
    expect(begun).toHaveLength(1);
    expect(await house.deliveries(10)).toEqual([]);
    await house.deliver(begun[0] as ClaimedWork);
    await drain();
    expect(house.platform().texts()).toEqual(["a1", "a2"]);
    const withPlaces = house.parts;
    house.parts = { keepDelivery: () => null };
    await house.answered(["b1"], { topic: "t" });
    expect(await house.deliveries(10)).toHaveLength(1);
    // A turn that cannot be committed gives its place back.
    house.parts = withPlaces;
    const before = asked.length;
    await place.tamper(
      place.kind === "sqlite"
        ? "create trigger refuse before insert on outbox begin select raise(abort, 'no'); end"
        : "alter table outbox add constraint refuse check (body is null) not valid",
    );
    await house.answered(["a3"]).catch(() => {});
    expect(asked.length).toBeGreaterThan(before);
    expect(kept).toBe(0);
    expect(begun).toHaveLength(1);
  });

  test("accounts take turns: a busy one does not come before one with a single reply", async () => {
    const account = { token: "x", allow: ["7"] };
    await house.adopt({ test: { accounts: { busy: account, calm: { ...account, token: "y" } } } });
    for (let chat = 0; chat < 8; chat++)
      await house.hear([chatMessage(`c${chat}`, { place: { chat: `c${chat}`, chatType: "group" } })], undefined, "busy");
    await house.hear([chatMessage("calm", { place: { chat: "calm", chatType: "group" } })], undefined, "calm");
    const turns = await house.store.queue.claim("node", 9, 60_000, [TURN_WORK]);
    expect(turns).toHaveLength(9);
    for (const turn of turns) await house.take(turn);
    for (const item of await house.deliveries(2)) await house.deliver(item);
    expect(house.platform("calm").shown).toHaveLength(1);
    expect(house.platform("busy").shown).toHaveLength(1);
  });

  describe.each(POLICIES)("E3 E4, %s: in every part of a reply", (policy) => {
    const parts = THREE.split("\n");
    const twice = (which: number): string[] =>
      parts.flatMap((text, index) => (policy === "at_least_once" && index === which ? [text, text] : [text]));

    test("dying after it was intended, and before it left", async () => {
      await eachPart(async (chat, part) => {
        await house.deliverAndDieAt("reply.intended", part + 1);
        await drain();
        expect(house.platform().texts(chat)).toEqual(parts.filter((_, index) => policy !== "at_most_once" || index !== part));
      });
    });

    test("dying after it has arrived, and before that was recorded", async () => {
      await eachPart(async (chat, part) => {
        await house.deliverAndDieAt("reply.delivered", part + 1);
        await drain();
        expect(house.platform().texts(chat)).toEqual(twice(part));
      });
    });

    test("the answer is lost", async () => {
      await eachPart(async (chat, part) => {
        const before = house.platform().asked.length;
        house.platform().fate = () => (house.platform().asked.length === before + part + 1 ? "lose answer" : "take");
        await drain();
        expect(house.platform().texts(chat)).toEqual(twice(part));
      });
    });

    test("dying after everything was recorded: nothing is sent again", async () => {
      await under(policy);
      await house.answered([THREE]);
      await house.deliverAndDieAt("reply.recorded");
      await elapse(DAY_MS);
      await house.store.queue.reap();
      expect(await house.deliveries(10)).toEqual([]);
      expect(house.platform().texts()).toEqual(parts);
      expect(await house.told("reply.unclear")).toEqual([]);
    });

    /** Each in a chat of its own; afterwards the books must say what is known. */
    const eachPart = async (happens: (chat: string, part: number) => Promise<void>): Promise<void> => {
      await under(policy);
      for (const part of [0, 1, 2]) {
        await house.answered([THREE], { chat: `chat ${part}` });
        await happens(`chat ${part}`, part);
      }
      const unclear = (await house.told("reply.unclear")).map(({ data }) => data);
      expect(unclear).toMatchObject(policy === "dedupes" ? [] : [0, 1, 2].map((part) => ({ part, policy })));
      for (const [part, reply] of (await house.replies()).entries()) {
        expect(reply.state).toBe(policy === "at_most_once" ? "unknown" : "sent");
        const ids = JSON.parse(reply.sent ?? "[]") as (string | null)[];
        expect(ids.map((id) => id === null)).toEqual([0, 1, 2].map((index) => policy === "at_most_once" && index === part));
      }
      expect(await house.told(policy === "at_most_once" ? "reply.abandoned" : "reply.sent")).toHaveLength(3);
    };
  });

  test("a part that nobody ever answers is sent four times and no more, and the rest goes on", async () => {
    await house.answered([THREE]);
    house.platform().fate = ({ part }) => (part?.text === "two" ? "lose answer" : "take");
    await drain();
    expect(house.platform().texts()).toEqual(["one", "two", "two", "two", "two", "three"]);
    expect((await house.told("reply.unclear")).map(({ data }) => (data as { part: number }).part)).toEqual([1, 1, 1, 1]);
    expect(await house.replies()).toMatchObject([{ state: "unknown" }]);
  });

  test("doubts about one part do not count for the next", async () => {
    await house.answered([THREE]);
    const seen = new Map<string, number>();
    house.platform().fate = ({ key }) => {
      const times = (seen.get(key) ?? 0) + 1;
      seen.set(key, times);
      return times <= 2 ? "lose answer" : "take";
    };
    await drain();
    expect([...seen.values()]).toEqual([3, 3, 3]);
    expect(await house.replies()).toMatchObject([{ state: "sent" }]);
  });

  test("R4: the time that the platform asks for is waited, exactly, and other chats go on", async () => {
    await house.answered(["slow", "slower"]);
    await house.answered(["other"], { chat: "8" });
    house.platform().fate = ({ place: { chat } }) => (chat === "7" ? new SendTrouble("later", "429", { afterMs: 50_000 }) : "take");
    for (const item of await house.deliveries(10)) await house.deliver(item);
    expect(house.platform().texts("8")).toEqual(["other"]);
    house.platform().fate = () => "take";
    await elapse(40_000);
    await house.store.queue.reap();
    expect(await house.deliveries(10)).toEqual([]);
    await elapse(10_001);
    await drain();
    expect(house.platform().texts()).toEqual(["slow", "slower"]);
    expect(await house.told("reply.unclear")).toEqual([]);
    expect(house.platform().asked.filter(({ place: { chat } }) => chat === "7")).toHaveLength(3);
  });

  test("what holds for a whole account pauses all of its chats, and no other account", async () => {
    const account = { token: "x", allow: ["7"] };
    await house.adopt({ test: { accounts: { one: account, two: { ...account, token: "y" } } } });
    for (const chat of ["c1", "c2", "c3"]) await house.answered([`in ${chat}`], { chat }, "one");
    await house.answered(["fine"], {}, "two");
    house.platform("one").fate = () => new SendTrouble("later", "429", { afterMs: 600_000, isWhole: true });
    for (const item of await house.deliveries(10)) await house.deliver(item);
    expect(house.platform("one").asked).toHaveLength(1);
    expect(house.platform("two").texts()).toEqual(["fine"]);
    house.platform("one").fate = () => "take";
    await elapse(590_000);
    await house.store.queue.reap();
    for (const item of await house.deliveries(10)) await house.deliver(item);
    expect(house.platform("one").asked).toHaveLength(1);
    await elapse(12_000);
    await drain();
    expect(house.platform("one").shown).toHaveLength(3);
  });

  test("an account that is refused keeps its replies until it is let in again", async () => {
    await house.answered(["patience"]);
    house.platform().fate = () => new SendTrouble("refused", "401", { isWhole: true });
    await house.deliverNext();
    expect(await house.replies()).toMatchObject([{ state: "pending" }]);
    house.platform().fate = () => "take";
    await drain();
    expect(house.platform().texts()).toEqual(["patience"]);
  });

  test("what the platform never takes is recorded with its words, and the next one goes on", async () => {
    await house.answered([THREE, "next"]);
    house.platform().fate = ({ part }) => (part?.text === "two" ? new SendTrouble("refused", "the bot was removed") : "take");
    await drain();
    expect(house.platform().texts()).toEqual(["one", "next"]);
    expect(await house.replies()).toMatchObject([{ state: "refused", problem: "the bot was removed", sent: '["p0"]' }, { state: "sent" }]);
    expect(await house.told("reply.refused")).toMatchObject([{ data: { problem: "the bot was removed" } }]);
  });

  test.each([
    ["at_least_once", "later", "refused"],
    ["dedupes", "unclear", "unknown"],
  ] as const)("%s: what could not be brought for a day (%s) is given up as %s", async (policy, kind, state) => {
    await under(policy);
    await house.answered(["old"]);
    house.platform().fate = () => new SendTrouble(kind, "nobody there");
    await house.deliverNext();
    await elapse(DAY_MS - 60_000);
    await house.deliverNext();
    expect(await house.replies()).toMatchObject([{ state: "pending" }]);
    await elapse(10 * 60_000);
    await house.deliverNext();
    expect(await house.replies()).toMatchObject([{ state, problem: "not within a day: nobody there" }]);
  });

  test("an account that is not in the config any more is the end of its replies; one with another token is not", async () => {
    await house.answered(["first", "second"]);
    await house.adopt({ test: { allow: ["7"], token: "another" } });
    await house.deliverNext();
    await house.adopt({});
    await house.deliverNext();
    expect(await house.replies()).toMatchObject([
      { state: "sent" },
      { state: "refused", problem: expect.stringContaining("test/default") },
    ]);
  });

  test("while an account is made anew, its replies find it", async () => {
    await house.answered(["meanwhile"]);
    const adopting = house.adopt({ test: { allow: ["7"], token: "another" } });
    await house.deliverNext();
    await adopting;
    expect(house.platform().texts()).toEqual(["meanwhile"]);
  });

  test("a channel that cannot be opened does not use up the attempts of a reply", async () => {
    await house.answered(["patience"]);
    await house.adopt({ test: { allow: ["7"], token: "another" } });
    house.openFails = new Error("no such file");
    const other = new ChattingHouse(house.store, { channels: { test: { allow: ["7"] } } }, "other");
    other.openFails = house.openFails;
    await other.adopt();
    for (let attempt = 0; attempt < 7; attempt++) {
      await elapse(120_000);
      await other.deliverNext();
    }
    expect(await house.replies()).toMatchObject([{ state: "pending" }]);
    other.openFails = null;
    await elapse(120_000);
    await other.deliverNext();
    expect(other.platform().texts()).toEqual(["patience"]);
    await other.leave();
  });

  test("a reply without words is done with at once", async () => {
    house.play = () => "";
    await house.hear([chatMessage("say nothing")]);
    await house.take();
    await house.deliverNext();
    expect(house.platform().asked).toEqual([]);
    expect(await house.replies()).toMatchObject([{ state: "sent", sent: "[]" }]);
  });

  test("a turn that fails tells the chat so, once, and nothing of what went wrong", async () => {
    house.play = () => {
      throw new Failure("model.refused", "the key sk-123 is wrong");
    };
    const question = chatMessage("hello");
    await house.hear([question]);
    await house.take();
    await house.hear([question]);
    await drain();
    expect(house.platform().texts()).toEqual([expect.stringContaining("model.refused")]);
    expect(house.platform().texts()[0]).not.toContain("sk-123");
  });

  test("in a group a reply shows what it answers, its first part alone", async () => {
    house.play = () => THREE;
    await house.hear([chatMessage("hello", { place: { chat: "g", chatType: "group" } })]);
    await house.take();
    await drain();
    expect(house.platform().shown.map(({ answers }) => answers)).toEqual(["at the platform hello", null, null]);
  });

  test.each([
    ["is edited", undefined, ["two", "three"]],
    ["was removed by somebody: its words are said anew", new SendTrouble("refused", "no such message"), ["one", "two", "three"]],
  ])("a message that shows the beginning already %s", async (_how, trouble, shown) => {
    const edits: string[] = [];
    house.platform().edit = async ({ part }, id) => {
      edits.push(`${id}: ${part?.text}`);
      if (trouble) throw trouble;
    };
    house.play = () => THREE;
    await house.hear([chatMessage("write")]);
    const [item] = await house.claim();
    const run = await house.input((item as ClaimedWork & { payload: TurnPayload }).payload.runId);
    await house.store.transact("draft", async (tx) => {
      const draft = newId();
      await addReply(tx, { id: draft, runId: run.id, address: run.address, text: "", answers: null }, "draft");
      await keepDraft(tx, draft, null, "shown already");
    });
    await house.take(item);
    await drain();
    expect(edits).toEqual(["shown already: one"]);
    expect(house.platform().texts()).toEqual(shown);
    expect(await house.replies()).toMatchObject([{ state: "sent" }]);
    expect(await house.told("reply.unclear")).toEqual([]);
  });

  test.each(["recorded", "not recorded"])("a draft that was removed does not swallow the reply where keys are known, %s", async (how) => {
    const platform = house.platform();
    platform.abilities = { dedupes: true, reacts: false, sendsFiles: true };
    platform.edit = async () => {
      throw new SendTrouble("refused", "no such message");
    };
    house.play = () => "The answer.";
    await house.hear([chatMessage("write")]);
    const [item] = await house.claim();
    const run = await house.input((item as ClaimedWork & { payload: TurnPayload }).payload.runId);
    const { hub, store } = house;
    const draft = newId();
    const { guild, chat, topic, chatType } = run.address;
    const message = { place: { guild, chat, topic, chatType }, key: `${draft}:0`, part: { text: "The", plain: "The" }, answers: null };
    const sent = await (await hub.senderOf(run.address))?.channel.send(message, new AbortController().signal);
    await store.transact("draft", async (tx) => {
      await addReply(tx, { id: draft, runId: run.id, address: run.address, text: "The", answers: null }, "draft");
      if (how === "recorded") await keepDraft(tx, draft, null, sent?.id ?? null);
      else await keepDraft(tx, draft, 0, null);
    });
    await house.take(item);
    await drain();
    expect(platform.texts()).toEqual(["The", "The answer."]);
    expect(await house.replies()).toMatchObject([{ state: "sent", sent: '["p1"]' }]);
  });

  test("a platform that knows keys does not know them for ever: what comes back late may be there already, and the books say so", async () => {
    house.platform().abilities = { dedupes: true, reacts: false, sendsFiles: true };
    await house.answered(["soon"]);
    await house.deliverAndDieAt("reply.delivered");
    await house.deliverNext();
    expect(await house.told("reply.unclear")).toEqual([]);
    await house.answered(["late"]);
    await house.deliverAndDieAt("reply.delivered");
    await elapse(3 * 60_000);
    await house.deliverNext();
    expect(await house.told("reply.unclear")).toHaveLength(1);
    expect(await house.replies()).toMatchObject([{ state: "sent" }, { state: "sent" }]);
  });

  test("whoever has lost the claim of a reply can record nothing about it", async () => {
    await house.answered(["mine"]);
    const [stale] = await house.deliveries();
    await elapse(61_000);
    await house.store.queue.reap();
    const [fresh] = await house.deliveries();
    await expect(house.deliver(stale as ClaimedWork)).rejects.toMatchObject({ code: "fence.stale" });
    expect(house.platform().asked).toEqual([]);
    await house.deliver(fresh as ClaimedWork);
    expect(house.platform().texts()).toEqual(["mine"]);
  });

  test("one that killed every node keeps what the books know of it", async () => {
    await house.answered([THREE]);
    await house.deliverAndDieAt("reply.intended", 2);
    await house.store.transact("spent", (tx) => tx.run`update work set attempts = max_attempts, lease_until = 0, state = 'running'`);
    await house.store.queue.reap();
    for (const dead of await house.store.queue.dead(10)) await abandonDelivery(house.store, dead);
    expect(await house.replies()).toMatchObject([{ state: "unknown", sent: '["p0"]' }]);
    expect(await house.told("reply.abandoned")).toHaveLength(1);
  });
});

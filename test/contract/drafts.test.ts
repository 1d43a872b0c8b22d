import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Draft, dropDraft, intendDraft, noteDraft, recordDraft, settleLeftDrafts } from "../../src/acts/draft-reply.ts";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import type { TurnPayload } from "../../src/acts/work-kinds.ts";
import { followTurns } from "../../src/edges/channels/follow-turn.ts";
import { SendTrouble } from "../../src/kernel/channel.ts";
import { Failure } from "../../src/kernel/failure.ts";
import type { RunInput } from "../../src/records/sessions/runs.ts";
import { LiveHub } from "../../src/turns/live-hub.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { quiet } from "../turn-parts.ts";
import { ChattingHouse, chatMessage } from "./chatting-house.ts";
import { newId } from "./sessions-place.ts";

const SOON = { timeout: 10_000, interval: 5 };

describe.each(PLACES)("drafts on %s", (_name, makePlace) => {
  let place: StorePlace;
  let house: ChattingHouse;
  let live: LiveHub;
  /** What every message shows by now, in the order in which they came. */
  let screen: Map<string, string>;

  beforeEach(async () => {
    place = makePlace();
    house = new ChattingHouse(await place.open());
    live = new LiveHub();
    screen = new Map();
    await house.adopt();
    const platform = house.platform();
    platform.abilities = { dedupes: false, reacts: false, sendsFiles: true, editEveryMs: 1 };
    platform.edit = async ({ part }, id) => void screen.set(id, part?.text ?? "");
    house.parts = { live, delivers: () => true, shows: follow() };
  });
  const follow = (quietMs = 10_000): ReturnType<typeof followTurns> =>
    followTurns({
      ...{ store: house.store, newId, live, log: quiet, clock: { now: () => Date.now() }, quietMs },
      delivers: () => true,
      senderOf: (address) => house.hub.senderOf(address),
    });
  afterEach(async () => {
    await house.leave();
    await place.remove();
  });
  const shown = (): string[] => house.platform().shown.map(({ text }, index) => screen.get(`p${index}`) ?? text);
  const waitingRun = async (): Promise<RunInput> => {
    const row = await house.store.read.get<{ payload: string }>`select payload from work where kind = 'turn' order by id desc limit 1`;
    return house.input((JSON.parse(row?.payload ?? "{}") as TurnPayload).runId);
  };
  const drafts = (): Promise<{ draft: string | null; intended: number | null; body: string }[]> =>
    house.store.read.all`select draft, intended, body from outbox where state = 'draft'`;
  const deliverAll = async (): Promise<void> => {
    for (const item of await house.deliveries(10)) await house.deliver(item);
  };
  /** A turn that says something, which is seen, before it goes on as the test says. */
  const seenSaying = async (said: string, then: (run: RunInput) => string | Promise<string>): Promise<RunInput> => {
    await house.hear([chatMessage("write", { id: newId() })]);
    const run = await waitingRun();
    house.play = async () => {
      live.publish(run.id, said);
      await expect.poll(async () => (await drafts())[0]?.draft ?? null, SOON).not.toBeNull();
      return then(run);
    };
    return run;
  };
  /** A turn that was begun by a node that died; answers its draft as that node has left it. */
  const diedAfter = async (leaves: (run: RunInput) => Promise<Draft | undefined>): Promise<RunInput> => {
    await house.hear([chatMessage("write", { id: newId() })]);
    const run = await waitingRun();
    house.play = () => "unheard";
    await house.takeAndDieAt("turn.begun");
    expect(await leaves(run)).toMatchObject({ isNew: true });
    house.play = () => "The answer.";
    return run;
  };
  const intend = (run: RunInput): Promise<Draft | undefined> =>
    intendDraft(house.store, newId, { runId: run.id, address: run.address, text: "The", answers: null });

  test("what a turn has shown becomes its reply, in the same message", async () => {
    await seenSaying("The ", () => "The answer.\nAnd more.");
    await house.take();
    expect(await drafts()).toEqual([]);
    await deliverAll();
    expect(shown()).toEqual(["The answer.", "And more."]);
    expect(house.platform().shown[0]?.text).toBe("The …");
    expect(await house.replies()).toMatchObject([{ state: "sent", sent: '["p0","p1"]' }]);
    expect(await house.told("reply.unclear")).toEqual([]);
  });

  test("the last word is not committed while an edit is on its way", async () => {
    const happened: string[] = [];
    const landing = Promise.withResolvers<void>();
    const edits = Promise.withResolvers<void>();
    house.platform().edit = async ({ part }, id) => {
      if (part?.text.endsWith("…")) {
        edits.resolve();
        await landing.promise;
        happened.push("edited");
      }
      screen.set(id, part?.text ?? "");
    };
    house.reached = (point) => void (point === "turn.answered" && happened.push("answered"));
    await seenSaying("The ", async (run) => {
      live.publish(run.id, "answer");
      await edits.promise;
      setTimeout(() => landing.resolve(), 100);
      return "The answer.";
    });
    await house.take();
    expect(happened).toEqual(["edited", "answered"]);
    await deliverAll();
    expect(shown()).toEqual(["The answer."]);
  });

  test("an edit that takes too long is not waited for, and when it comes after all, the last word is said again", async () => {
    house.parts = { ...house.parts, shows: follow(20) };
    const said: string[] = [];
    const landing = Promise.withResolvers<void>();
    const edits = Promise.withResolvers<void>();
    house.platform().edit = async ({ part }, id) => {
      if (part?.text.endsWith("…")) {
        edits.resolve();
        await landing.promise;
      }
      screen.set(id, part?.text ?? "");
      said.push(part?.text ?? "");
    };
    await seenSaying("The ", async (run) => {
      live.publish(run.id, "ans");
      await edits.promise;
      return "The answer.";
    });
    await house.take();
    landing.resolve();
    await expect.poll(() => shown(), SOON).toEqual(["The ans …"]);
    await deliverAll();
    await expect.poll(() => said, SOON).toEqual(["The ans …", "The answer.", "The answer."]);
  });

  test("E3: dying after a draft was intended: it may be on the screen, the books say so, and the reply is sent", async () => {
    const run = await diedAfter(intend);
    await house.take();
    await deliverAll();
    expect(shown()).toEqual(["The answer."]);
    expect(await house.told("reply.unclear")).toMatchObject([{ subject: ["run", run.id], data: { part: 0, policy: "at_least_once" } }]);
    expect(await house.replies()).toMatchObject([{ state: "sent" }]);
  });

  test("where the platform knows what it was sent, a draft nobody knew of becomes the reply", async () => {
    house.platform().abilities = { ...house.platform().abilities, dedupes: true };
    await diedAfter(async (run) => {
      const draft = await intend(run);
      const { channel } = (await house.hub.senderOf(run.address)) ?? {};
      const { guild, chat, topic, chatType } = run.address;
      const message = {
        place: { guild, chat, topic, chatType },
        key: `${draft?.id}:0`,
        part: { text: "The …", plain: "The …" },
        answers: null,
      };
      await channel?.send(message, new AbortController().signal);
      return draft;
    });
    await house.take();
    await deliverAll();
    expect(shown()).toEqual(["The answer."]);
    expect(await house.told("reply.unclear")).toEqual([]);
    expect(await house.replies()).toMatchObject([{ state: "sent", sent: '["p0"]' }]);
  });

  test("dying after a draft was recorded: whoever goes on with the turn goes on with its message", async () => {
    await diedAfter(async (run) => {
      const draft = await intend(run);
      await recordDraft(house.store, draft?.id ?? "", "p0");
      house.platform().shown.push({ chat: "7", text: "The …", answers: null });
      return draft;
    });
    house.play = async () => {
      live.publish((await waitingRun()).id, "The ans");
      await expect.poll(() => screen.get("p0"), SOON).toBe("The ans …");
      return "The answer.";
    };
    await house.take();
    await deliverAll();
    expect(shown()).toEqual(["The answer."]);
    expect(await house.told("reply.unclear")).toEqual([]);
  });

  test("of a draft whose answer is lost nothing is sent again while the turn runs", async () => {
    house.platform().fate = () => "lose answer";
    await house.hear([chatMessage("write")]);
    const run = await waitingRun();
    house.play = async () => {
      for (const piece of ["The ", "answer ", "is "]) {
        live.publish(run.id, piece);
        await expect.poll(() => house.platform().asked.length, SOON).toBe(1);
      }
      house.platform().fate = () => "take";
      return "The answer.";
    };
    await house.take();
    expect(house.platform().asked).toHaveLength(1);
    await deliverAll();
    expect(shown()).toEqual(["The …", "The answer."]);
    expect(await house.told("reply.unclear")).toHaveLength(1);
  });

  test("whoever wants everything at most once gets no draft that may be lost", async () => {
    await house.adopt({ test: { allow: ["7"], delivery: "at_most_once" } });
    await house.hear([chatMessage("write")]);
    const run = await waitingRun();
    house.play = async () => {
      live.publish(run.id, "The ");
      await new Promise((resolve) => setTimeout(resolve, 50));
      return "The answer.";
    };
    await house.take();
    await deliverAll();
    expect(house.platform().asked.map(({ part }) => part?.text)).toEqual(["The answer."]);
  });

  test("a turn that is stopped marks what it has shown; a draft that comes after that is not begun", async () => {
    const run = await seenSaying("The ", async ({ id }) => {
      await noteDraft(house.store, (await intendDraft(house.store, newId, { ...draftOf(run) }))?.id ?? "", "The beginning");
      await house.store.transact("stop", (tx) => stopRunIn(taskParts(house.store, newId, house.agents), tx, id, "operator"), "locked");
      return "never heard";
    });
    await house.take();
    expect(await intend(run)).toBeUndefined();
    expect(await drafts()).toEqual([]);
    await deliverAll();
    expect(shown()).toEqual(["The beginning", "", "(stopped)"]);
  });

  test("a turn that fails says so in the message that has shown it", async () => {
    await seenSaying("The ", () => {
      throw new Failure("model.refused", "no");
    });
    await house.take();
    await deliverAll();
    expect(shown()).toEqual([expect.stringContaining("model.refused")]);
  });

  test("an answer without words leaves no half sentence", async () => {
    await seenSaying("The ", () => "");
    await house.take();
    await deliverAll();
    expect(shown()).toEqual(["(nothing to say)"]);
  });

  test("a draft that was not taken is forgotten", async () => {
    house.platform().fate = () => new SendTrouble("refused", "no");
    await house.hear([chatMessage("write")]);
    const run = await waitingRun();
    house.play = async () => {
      live.publish(run.id, "The ");
      await expect.poll(() => house.platform().asked.length, SOON).toBe(1);
      await expect.poll(drafts, SOON).toEqual([]);
      house.platform().fate = () => "take";
      return "The answer.";
    };
    await house.take();
    await deliverAll();
    expect(shown()).toEqual(["The answer."]);
    expect(await house.told("reply.unclear")).toEqual([]);
  });

  test("no draft stays: one whose turn is over, with nobody to deliver it, is settled", async () => {
    house.parts = { ...house.parts, delivers: () => false };
    const run = await seenSaying("The ", () => "The answer.");
    await house.take();
    await settleLeftDrafts(house.store);
    expect(await house.replies()).toMatchObject([{ state: "unknown", problem: expect.stringContaining("ended") }]);
    expect(await house.told("reply.abandoned")).toMatchObject([{ subject: ["run", run.id] }]);
  });

  test("a draft that is shown is not dropped, and one whose reply is under way is not recorded", async () => {
    const run = await diedAfter(intend);
    const [row] = await house.store.read.all<{ id: string }>`select id from outbox`;
    const id = row?.id ?? "";
    expect(await intend(run)).toMatchObject({ id, isNew: false, shown: null });
    expect(await recordDraft(house.store, id, "p9")).toBe(true);
    await dropDraft(house.store, id);
    expect(await drafts()).toMatchObject([{ draft: "p9", intended: null }]);
    expect(await recordDraft(house.store, id, "p10")).toBe(false);
  });

  const draftOf = (run: RunInput) => ({ runId: run.id, address: run.address, text: "", answers: null });
});

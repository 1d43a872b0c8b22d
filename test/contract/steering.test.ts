import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import { DELIVERY_WORK } from "../../src/acts/work-kinds.ts";
import { newMail } from "../../src/contract/mail.ts";
import { Failure } from "../../src/kernel/failure.ts";
import { Mailbox } from "../../src/records/mailbox/mailbox.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import { readTranscript } from "../../src/records/sessions/transcript.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { newId } from "./sessions-place.ts";
import { call, TurningHouse, wordsIn } from "./turning-house.ts";

const KEY = "agent:main:telegram:dm:7";
const GUEST = { kind: "guest", name: "eve", roles: [], run: null, step: null, call: null } as const;

describe.each(PLACES)("what reaches a turn while it runs, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TurningHouse;
  /** Done while the turn makes its first call. */
  let meanwhile: () => Promise<unknown>;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TurningHouse(store, { owners: ["telegram:7"], dm_scope: "per-channel-peer" });
    meanwhile = async () => {};
    house.tools = [
      defineTool({
        name: "todo",
        description: "looks",
        parameters: z.object({}),
        effect: "pure",
        run: async () => {
          await meanwhile();
          return { output: "seen" };
        },
      }),
    ];
    house.play = (_request, count) => (count === 1 ? { text: "I look", calls: [call("todo")] } : `answer ${count}`);
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const runOf = (id: string) => readRun(store.read, id);
  const replies = () => store.read.all<{ run_id: string; text: string }>`select run_id, body as text from outbox order by id`;
  const waiting = async () => (await store.queue.claim("looks", 10, 60_000, ["turn"])).length;

  test("is told to the model before it goes on, and all messages get the one answer", async () => {
    const first = await house.send("one");
    let second = first;
    meanwhile = async () => {
      second = await house.send("two");
    };
    await house.take();
    expect(wordsIn(house.asked[1] as never)).toEqual([
      "user: one",
      "assistant: I look calls todo",
      "results: seen",
      "user: [while you work, from telegram:7] two",
    ]);
    expect(await runOf(first.runId)).toMatchObject({ status: "completed", reply: { text: "answer 2" } });
    expect(await runOf(second.runId)).toMatchObject({ status: "completed", reply: { text: "answer 2" }, mergedInto: first.runId });
    expect(await replies()).toHaveLength(1);
    expect(await waiting()).toBe(0);
    expect(await house.events(second.runId)).toEqual(["message.admitted", "route.decided", "turn.merged", "turn.completed"]);
    expect(await house.events(first.runId)).toContain("turn.steered");
    const said = await readTranscript(store.read, KEY, 1, 10);
    expect(said.map(({ role, text }) => `${role}: ${text}`)).toEqual(["user: one", "user: two", "assistant: answer 2"]);
  });

  test("is remembered in its place by the next turn", async () => {
    await house.send("one");
    meanwhile = () => house.send("two");
    await house.take();
    await house.send("three");
    house.play = () => "done";
    await house.take();
    expect(wordsIn(house.asked.at(-1) as never)).toEqual([
      "user: one",
      "assistant: I look calls todo",
      "results: seen",
      "user: [while you work, from telegram:7] two",
      "assistant: answer 2",
      "user: three",
    ]);
  });

  test("waits for a turn of its own when the last answer is being made", async () => {
    await house.send("one");
    house.play = async (_request, count) => {
      if (count === 1) await house.send("two");
      return `answer ${count}`;
    };
    await house.take();
    await house.take();
    expect((await replies()).map(({ text }) => text)).toEqual(["answer 1", "answer 2"]);
  });

  test("is taken in order, and only up to what needs a turn of its own", async () => {
    const brought = { request: { messages: null, instructions: null, tools: [], settings: {}, hash: "h" }, sessionKey: KEY };
    const other = {
      id: "b",
      platform: "telegram",
      account: "default",
      chat: "7",
      peer: "7",
      chat_type: "dm",
      roles: [] as string[],
      text: "by a program",
    } as const;
    await house.send("one");
    meanwhile = async () => {
      await house.send("two");
      await house.accept(other, undefined, brought);
      await house.send("three");
    };
    await house.take();
    expect(wordsIn(house.asked[1] as never).at(-1)).toBe("user: [while you work, from telegram:7] two");
    house.play = () => "later";
    await house.take();
    expect(wordsIn(house.asked.at(-1) as never).at(-1)).toBe("user: by a program");
    await house.take();
    expect(wordsIn(house.asked.at(-1) as never).at(-1)).toBe("user: three");
    expect(await replies()).toHaveLength(3);
  });

  test("of another chat in the same conversation gets its own answer", async () => {
    house.reconfigure({ agents: { main: { model: "test/model", dm_scope: "main" } } });
    await house.send("one");
    let elsewhere = "";
    meanwhile = async () => {
      elsewhere = (await house.send("two", { peer: "8", chat: "8" })).runId;
    };
    await house.take();
    expect(await runOf(elsewhere)).toMatchObject({ status: "queued" });
    await house.take();
    expect((await replies()).map(({ run_id }) => run_id)).toContain(elsewhere);
  });

  test("of a new conversation is not told to the old one", async () => {
    await house.send("one");
    meanwhile = async () => {
      await house.send("/new");
      await house.send("two");
    };
    await house.take();
    expect(wordsIn(house.asked[1] as never).at(-1)).toBe("results: seen");
    await house.take();
    expect(wordsIn(house.asked.at(-1) as never)).toEqual(["user: two"]);
  });

  test.each(["turn.steered", "model.response.recorded"] as const)(
    "is neither lost nor answered twice when the node dies at %s",
    async (point) => {
      const first = await house.send("one");
      let second = "";
      let calls = 0;
      house.play = (request) => (request.messages.some(({ role }) => role === "tool") ? "the answer" : { calls: [call("todo")] });
      meanwhile = async () => {
        if (calls++ === 0) second = (await house.send("two")).runId;
      };
      await house.takeAndDieAt(point);
      await house.take();
      for (const id of [first.runId, second]) expect(await runOf(id)).toMatchObject({ status: "completed", reply: { text: "the answer" } });
      const told = house.asked.at(-1);
      expect(wordsIn(told as never).filter((words) => words.includes("two"))).toHaveLength(1);
      expect(await replies()).toHaveLength(1);
      expect(await waiting()).toBe(0);
      expect((await readTranscript(store.read, KEY, 1, 10)).map(({ text }) => text)).toEqual(["one", "two", "the answer"]);
    },
  );

  test("fails with the turn, and stays in the conversation", async () => {
    const first = await house.send("one");
    let second = "";
    meanwhile = async () => {
      second = (await house.send("two")).runId;
    };
    house.play = (_request, count) => {
      if (count > 1) throw new Failure("model.refused", "no");
      return { calls: [call("todo")] };
    };
    await house.take();
    for (const id of [first.runId, second]) expect(await runOf(id)).toMatchObject({ status: "failed", error: { code: "model.refused" } });
    expect(await house.events(second)).toContain("turn.failed");
    expect((await readTranscript(store.read, KEY, 1, 10)).map(({ text }) => text)).toEqual(["one", "two"]);
    // Whoever wrote is told, once.
    expect(await replies()).toEqual([{ run_id: first.runId, text: expect.stringContaining("could not answer this (model.refused)") }]);
  });

  test("is stopped with the turn, and stopping it stops the turn", async () => {
    for (const which of [0, 1]) {
      house.asked.length = 0;
      const runs = [(await house.send("one")).runId];
      meanwhile = async () => {
        runs.push((await house.send("two")).runId);
      };
      house.play = async (_request, count) => {
        if (count === 1) return { calls: [call("todo")] };
        const chosen = runs[which] as string;
        await store.transact("stop", (tx) => stopRunIn(taskParts(store), tx, chosen, "operator"), "locked");
        return "too late";
      };
      await house.take();
      expect(house.asked).toHaveLength(2);
      for (const id of runs) expect(await runOf(id)).toMatchObject({ status: "failed", reply: null, error: { code: "run.stopped" } });
    }
    expect(await readTranscript(store.read, KEY, 1, 10)).toEqual([]);
    expect(await replies()).toEqual([]);
  });

  test("and was stopped before it was taken in stays stopped", async () => {
    await house.send("one");
    const stopped: string[] = [];
    meanwhile = async () => {
      const { runId } = await house.send("two");
      await store.transact("stop", (tx) => stopRunIn(taskParts(store), tx, runId, "operator"), "locked");
      stopped.push(runId);
      await house.send("three");
    };
    await house.take();
    expect(await runOf(stopped[0] as string)).toMatchObject({ status: "failed", error: { code: "run.stopped" } });
    expect(wordsIn(house.asked[1] as never).slice(3)).toEqual(["user: [while you work, from telegram:7] three"]);
  });

  test("when many write at once, on two nodes: everyone is answered once, whatever turn takes it in", async () => {
    const other = new TurningHouse(await place.open(), {});
    const sent: string[] = [(await house.send("first")).runId];
    let left = 12;
    meanwhile = async () => {
      if (left-- <= 0) return;
      const both = await Promise.all([house.send(`a${left}`, { id: `a${left}` }), other.send(`b${left}`, { id: `b${left}` })]);
      sent.push(...both.map(({ runId }) => runId));
    };
    let answers = 0;
    house.play = async () => {
      if (++answers % 4 !== 0) return { calls: [call("todo", { answers })] };
      // While the last answer is being made.
      await meanwhile();
      return `answer ${answers}`;
    };
    for (let items = await house.claim(); items.length > 0; items = await house.claim()) await house.take(items[0]);
    const runs = await Promise.all(sent.map(runOf));
    for (const run of runs) expect(run).toMatchObject({ status: "completed", reply: { text: expect.stringMatching(/^answer/) } });
    const merged = runs.filter((run) => run?.mergedInto !== undefined);
    for (const run of merged) expect(run?.reply).toEqual((await runOf(run?.mergedInto as string))?.reply);
    expect(sent).toHaveLength(25);
    expect(merged.length).toBeGreaterThan(10);
    expect(await replies()).toHaveLength(sent.length - merged.length);
    const said = (await readTranscript(store.read, KEY, 1, 100)).filter(({ role }) => role === "user").map(({ text }) => text);
    expect(new Set(said).size).toBe(25);
    expect(said).toHaveLength(25);
    other.remove();
  });

  describe("urgent mail", () => {
    const mailbox = () => new Mailbox(store, newId);
    const send = (content: string, priority: "urgent" | "normal") =>
      mailbox().send(GUEST, newMail.parse({ to: "main", type: "note", content, priority }));
    const states = () => store.read.all<{ state: string }>`select state from mail order by seq`;

    test("is told between two answers, marks the turn, and is acked with its commit", async () => {
      const { runId } = await house.send("one");
      meanwhile = async () => {
        await send("stop the press", "urgent");
        await send("no hurry", "normal");
      };
      await house.take();
      const told = wordsIn(house.asked[1] as never).at(-1);
      expect(told).toContain("[while you work, from eve]");
      expect(told).toContain("stop the press");
      expect(told).not.toContain("no hurry");
      expect((await states()).map(({ state }) => state)).toEqual(["acked", "pending"]);
      const [step] = await store.read.all<{ labels: string }>`select labels from run_steps where run_id = ${runId} and kind = 'steered'`;
      expect(step?.labels).toBe("external");
    });

    test("comes again when the turn fails", async () => {
      await house.send("one");
      meanwhile = () => send("stop the press", "urgent");
      house.play = (_request, count) => {
        if (count > 1) throw new Failure("model.refused", "no");
        return { calls: [call("todo")] };
      };
      await house.take();
      expect((await states()).map(({ state }) => state)).toEqual(["pending"]);
    });
  });

  test("leaves one delivery for the one answer", async () => {
    await house.send("one");
    meanwhile = () => house.send("two");
    await house.take();
    expect(await store.queue.claim("d", 10, 1_000, [DELIVERY_WORK])).toHaveLength(1);
  });
});

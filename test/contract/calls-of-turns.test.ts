import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineTool, type Effect, type Tool, type ToolOutcome } from "../../src/abilities/tools/tool.ts";
import { wakeHeldTurns } from "../../src/acts/hold-turn.ts";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import { answerApprovalIn } from "../../src/acts/wait-turn.ts";
import type { Approval, Verdict } from "../../src/contract/approvals.ts";
import { Failure } from "../../src/kernel/failure.ts";
import type { LiveChunk } from "../../src/kernel/live.ts";
import { Redaction } from "../../src/kernel/redact.ts";
import { readCalls } from "../../src/records/journal/calls.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import { usageOfRun } from "../../src/records/usage/usage.ts";
import type { Store } from "../../src/store/store.ts";
import { LiveHub } from "../../src/turns/live-hub.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { call, TurningHouse } from "./turning-house.ts";

const OWNER = { name: "operator", mayAnswer: true };
const HOUR = 3_600_000;

describe.each(PLACES)("calls of a turn, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TurningHouse;
  /** What was done, in its order. */
  let done: string[];

  const configure = (tools: unknown = "full", more: object = {}) => ({ agents: { main: { model: "test/model", tools, ...more } } });

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TurningHouse(store, configure());
    done = [];
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const tool = (name: string, effect: Effect, run: () => unknown = () => ({ output: `${name} done` })): Tool =>
    defineTool({
      name,
      description: "of the test",
      parameters: z.looseObject({}),
      effect,
      run: async () => {
        done.push(name);
        return (await run()) as ToolOutcome;
      },
    });
  const runOf = (id: string) => readRun(store.read, id);
  const asked = (): Promise<Approval[]> => house.approvals.list({ state: "asked", limit: 10 });
  const answer = (id: string, verdict: Verdict) =>
    store.transact("answer", (tx) => answerApprovalIn(store, house.approvals, tx, OWNER, id, verdict), "locked");
  /** What the model was told last of its calls. */
  const told = (): string[] => {
    const last = house.asked.at(-1)?.messages.findLast(({ role }) => role === "tool");
    return last?.role === "tool" ? last.results.map(({ text }) => text) : [];
  };

  const circular: { self?: unknown } = {};
  circular.self = circular;
  const odd: readonly [string, () => unknown, RegExp][] = [
    ["nothing at all", () => undefined, /^$/],
    ["a bare text", () => "words", /^words$/],
    ["a circle", () => ({ output: circular }), /cannot be shown/],
    ["a number without end", () => ({ output: { size: 12n } }), /12/],
    ["a function", () => ({ output: () => 1 }), /^$/],
    [
      "a thing without a name",
      () => {
        throw Object.create(null);
      },
      /^tool\.failed: /,
    ],
    [
      "undefined",
      () => {
        throw undefined;
      },
      /^tool\.failed: /,
    ],
  ];
  test.each(odd)("one that answers or throws %s was made all the same, and the turn goes on", async (_what, run, shown) => {
    house.tools = [tool("terminal", "unsafe", run)];
    house.play = (_request, count) => (count === 1 ? { calls: [call("terminal")] } : "so be it");
    const { runId } = await house.send("go");
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "completed", reply: { text: "so be it" } });
    expect(done).toEqual(["terminal"]);
    expect(told()).toEqual([expect.stringMatching(shown)]);
    expect(await readCalls(store.read, runId)).toMatchObject([{ state: "done" }]);
  });

  test("what may be done again after a power cut waits for no disk; a call that must not be made twice, and the answer that wants it, do", async () => {
    house.tools = [tool("web_fetch", "pure"), tool("file_write", "keyed"), tool("terminal", "unsafe")];
    const calls = [call("web_fetch"), call("file_write"), call("terminal")];
    house.play = (_request, count) => (count <= 3 ? { calls: calls.slice(count - 1, count) } : "so be it");
    await house.send("go");
    const [item] = await house.claim();
    const transact = vi.spyOn(store, "transact");
    await house.take(item);
    const lasting = transact.mock.calls.map(([label, , , lasts = "at once"]) => `${label}: ${lasts}`);
    expect(lasting).toEqual([
      "begin turn: with others",
      "record answer: with others",
      "settle call: with others",
      "record answer: at once",
      "intend call: at once",
      "settle call: at once",
      "record answer: at once",
      "intend call: at once",
      "settle call: at once",
      "commit turn: at once",
    ]);
  });

  test("a turn is not committed without the record of a call that it did not wait for", async () => {
    house.tools = [tool("web_fetch", "pure")];
    house.play = (_request, count) => (count === 1 ? { calls: [call("web_fetch")] } : "so be it");
    const { runId } = await house.send("go");
    await store.transact("in its way", async (tx) => {
      await tx.run`insert into tool_calls (run_id, step, place, call_id, tool, args, effect, state, labels, started_at, ended_at)
        values ('another', 1, 0, 'c', 'web_fetch', '{}', 'pure', 'done', '', 0, 0)`;
      await tx.run`create unique index one_fetch on tool_calls (tool)`;
    });
    try {
      await house.take();
    } finally {
      await store.transact("out of its way", (tx) => tx.run`drop index one_fetch`);
    }
    expect(await runOf(runId)).toMatchObject({ status: "failed" });
    expect(await store.read.all`select 1 from transcript where run_id = ${runId} and role = 'assistant' and body = 'so be it'`).toEqual([]);
  });

  test("a refusal and how to do better are told as two sentences", async () => {
    house.play = (_request, count) => (count === 1 ? { calls: [call("file_raed")] } : "so be it");
    await house.send("go");
    await house.take();
    expect(told()[0]).toMatch(/^tool\.unknown: [^.]+\. Call one of the tools/);
  });

  test("the last one of an answer that was cut is not made: nobody knows whether it was whole", async () => {
    house.tools = [tool("terminal", "unsafe"), tool("file_write", "keyed")];
    const half = { id: "half", tool: "terminal", args: "" };
    const cut = { calls: [call("file_write"), half], usage: { inputTokens: 1, outputTokens: 1 }, cut: true };
    house.play = (_request, count) => (count === 1 ? cut : "so be it");
    const { runId } = await house.send("go");
    await house.take();
    expect(done).toEqual(["file_write"]);
    expect(told()).toEqual(["file_write done", expect.stringMatching(/^tool\.bad_arguments: .*cut/)]);
    expect(await runOf(runId)).toMatchObject({ status: "completed" });
  });

  test("arguments inside arguments inside arguments are refused, however deep they go", async () => {
    house.tools = [tool("terminal", "unsafe")];
    const args = `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
    house.play = (_request, count) => (count === 1 ? { calls: [{ id: "1", tool: "terminal", args }] } : "so be it");
    const { runId } = await house.send("go");
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "completed" });
    expect(done).toEqual([]);
    expect(told()).toEqual([expect.stringMatching(/^tool\.bad_arguments: .*deep/)]);
  });

  test("an answer with calls where none may be made any more is paid for like every other", async () => {
    house.reconfigure(configure("full", { max_steps: 1 }));
    house.tools = [tool("todo", "pure")];
    house.play = (_request, count) => ({ calls: [call("todo", { count })], usage: { inputTokens: 10, outputTokens: 5 } });
    const { runId } = await house.send("go");
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "failed", error: { code: "turn.too_many_steps" } });
    expect(done).toEqual(["todo"]);
    expect(await usageOfRun(store.read, runId)).toMatchObject({ calls: 2 });
  });

  test("what one says while it runs is seen without secrets, also where one comes in two pieces", async () => {
    const redaction = new Redaction();
    redaction.add([["KEY", "s3cret-of-the-house"]]);
    const live = new LiveHub();
    house.parts = { redaction, live };
    let late: (text: string) => void = () => {};
    house.tools = [
      defineTool({
        name: "terminal",
        description: "of the test",
        parameters: z.object({}),
        effect: "unsafe",
        run: async (_args, { progress }) => {
          late = progress;
          progress("it is s3cret-of");
          progress("-the-house, he says");
          return { output: "done" };
        },
      }),
    ];
    house.play = (_request, count) => {
      if (count === 1) return { calls: [call("terminal")] };
      late("s3cret-of-the-house");
      return "so be it";
    };
    const { runId } = await house.send("go");
    const stop = new AbortController();
    const seen: LiveChunk[] = [];
    const listening = (async () => {
      for await (const chunk of live.listen(runId, stop.signal)) seen.push(chunk);
    })().catch(() => {});
    await house.take();
    stop.abort();
    await listening;
    const told = seen.flatMap((chunk) => (chunk.kind === "progress" ? [chunk] : []));
    expect(new Set(told.map((chunk) => chunk.tool))).toEqual(new Set(["terminal"]));
    const words = told.map(({ text }) => text).join("");
    expect(words).toBe("it is [secret KEY], he says");
  });

  test("the same call is told off after a while, but a turn that does other things beside it goes on", async () => {
    house.tools = [tool("todo", "pure"), tool("terminal", "unsafe")];
    house.play = (_request, count) => (count < 9 ? { calls: [call("todo"), call("terminal", { count })] } : "so be it");
    const { runId } = await house.send("go");
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "completed", reply: { text: "so be it" } });
    expect(done.filter((name) => name === "todo")).toHaveLength(3);
    expect(done.filter((name) => name === "terminal")).toHaveLength(8);
  });

  test("an attempt that came further is tried again, however many before it got nowhere", async () => {
    house.tools = [tool("terminal", "unsafe")];
    house.play = (_request, count) => {
      if (count === 1) return { calls: [call("terminal")] };
      if (count === 2) throw new Error("out of order");
      return "so be it";
    };
    const { runId } = await house.send("go");
    await store.transact("four lives", (tx) => tx.run`update work set attempts = 4`);
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "queued" });
    await place.elapse(HOUR);
    await store.queue.reap();
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "completed", reply: { text: "so be it" } });
    expect(done).toEqual(["terminal"]);
  });

  test("an attempt that got nowhere is the last when there were enough", async () => {
    house.play = () => {
      throw new Error("out of order");
    };
    const { runId } = await house.send("go");
    const next = await house.send("and then");
    await store.transact("four lives", (tx) => tx.run`update work set attempts = 4 where state = 'ready'`);
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "failed", error: { code: "model.failed" } });
    // The next turn, and what the one who wrote is told.
    expect(await store.queue.counts()).toEqual({ ready: 2 });
    expect((await house.claimTurn()).run.id).toBe(next.runId);
  });

  describe("that a person is to approve", () => {
    beforeEach(() => {
      house.reconfigure(configure({ profile: "full", ask: ["file_write", "file_edit"] }));
      house.tools = [tool("file_write", "keyed"), tool("file_edit", "keyed"), tool("terminal", "unsafe"), tool("todo", "pure")];
    });

    test("keeps what comes after it in the answer from being done before it; what stands before is done", async () => {
      const calls = [call("terminal", {}, "1"), call("file_write", {}, "2"), call("terminal", { sh: "a.sh" }, "3"), call("todo", {}, "4")];
      house.play = (_request, count) => (count === 1 ? { calls } : "so be it");
      const { runId } = await house.send("go");
      await house.take();
      expect(await runOf(runId)).toMatchObject({ status: "waiting" });
      expect(done).toEqual(["terminal"]);
      await answer((await asked())[0]?.id as string, "approve");
      await house.take();
      expect(done).toEqual(["terminal", "file_write", "terminal", "todo"]);
      expect(await runOf(runId)).toMatchObject({ status: "completed" });
    });

    test("does not wait longer than its own hour because of another that was answered late", async () => {
      house.play = (_request, count) => (count === 1 ? { calls: [call("file_write"), call("file_edit")] } : "so be it");
      const { runId } = await house.send("go");
      await house.take();
      const both = await asked();
      expect(both).toHaveLength(2);
      await place.elapse(0.9 * HOUR);
      await answer(both.find(({ tool: name }) => name === "file_write")?.id as string, "approve");
      await house.take();
      expect(await runOf(runId)).toMatchObject({ status: "waiting" });
      await place.elapse(0.1 * HOUR + 1_000);
      await store.queue.reap();
      await house.take();
      expect(await runOf(runId)).toMatchObject({ status: "completed", reply: { text: "so be it" } });
      expect(done).toEqual(["file_write"]);
      expect(told()).toEqual(["file_write done", expect.stringMatching(/^tool\.denied: .*expired/)]);
    });

    test("is made when the agent may answer again, and not when it may no longer call", async () => {
      house.play = (_request, count) => (count % 2 === 1 ? { calls: [call("file_write")] } : "so be it");
      const { runId } = await house.send("go");
      await house.take();
      const ask = ["file_write"];
      house.reconfigure(configure({ profile: "full", ask }, { state: "paused" }));
      await answer((await asked())[0]?.id as string, "approve");
      await house.take();
      expect(await runOf(runId)).toMatchObject({ status: "waiting" });
      expect(done).toEqual([]);
      house.reconfigure(configure({ profile: "full", ask }));
      await wakeHeldTurns(store, () => false);
      await house.take();
      expect(await runOf(runId)).toMatchObject({ status: "completed" });
      expect(done).toEqual(["file_write"]);

      const other = await house.send("again");
      await house.take();
      house.reconfigure(configure({ profile: "full", deny: ["file_write"] }));
      await answer((await asked())[0]?.id as string, "approve");
      await house.take();
      expect(await runOf(other.runId)).toMatchObject({ status: "completed" });
      expect(done).toEqual(["file_write"]);
      expect(told()).toEqual([expect.stringMatching(/^tool\.denied: /)]);
    });

    test("keeps nobody from commands, and what is said meanwhile is taken in when the turn goes on", async () => {
      house.reconfigure({ ...configure({ profile: "full", ask: ["file_write"] }), owners: ["telegram:7"] });
      house.play = (_request, count) => (count === 1 ? { calls: [call("file_write")] } : "so be it");
      const { runId } = await house.send("go");
      await house.take();
      const { runId: second } = await house.send("and hurry");
      expect(await house.claim()).toEqual([]);
      const id = (await asked())[0]?.id as string;
      expect(await house.ask(`/approve ${id}`)).toMatch(/^Approved/);
      expect(await house.ask(`/approve ${id}`)).toMatch(/^Approved/);
      expect(await house.ask(`/deny ${id}`)).toContain("already");
      await house.take();
      expect(done).toEqual(["file_write"]);
      for (const run of [runId, second]) expect(await runOf(run)).toMatchObject({ status: "completed", reply: { text: "so be it" } });
      expect(house.asked[1]?.messages.at(-1)).toMatchObject({ role: "user", text: expect.stringContaining("and hurry") });
    });

    test("is asked about no more when its turn is stopped, or has failed", async () => {
      house.play = () => ({ calls: [call("file_write"), call("file_edit")] });
      const { runId } = await house.send("go");
      await house.take();
      expect(await asked()).toHaveLength(2);
      await store.transact("stop", (tx) => stopRunIn(taskParts(store), tx, runId, "operator"), "locked");
      expect(await asked()).toEqual([]);
      const other = await house.send("go");
      await house.take();
      const [first] = await asked();
      await answer(first?.id as string, "deny");
      house.reconfigure({ agents: { other: { model: "test/model" } } });
      await house.take();
      expect(await runOf(other.runId)).toMatchObject({ status: "failed", error: { code: "agent.unknown" } });
      expect(await asked()).toEqual([]);
      expect((await house.approvals.list({ limit: 10 })).map(({ state }) => state).sort()).toEqual(["denied", "void", "void", "void"]);
    });
  });

  test("one that writes and then refuses has written nothing, and its refusal is on record", async () => {
    house.tools = [
      defineTool({
        name: "todo",
        description: "of the test",
        parameters: z.object({}),
        effect: "keyed",
        runIn: async (tx) => {
          await tx.run`update runs set input = 'overwritten'`;
          throw new Failure("memory.full", "no room");
        },
      }),
    ];
    house.play = (_request, count) => (count === 1 ? { calls: [call("todo")] } : "so be it");
    const { runId } = await house.send("go");
    await house.take();
    expect((await house.input(runId)).input).toBe("go");
    expect(told()).toEqual([expect.stringMatching(/^memory\.full: no room\. /)]);
    expect(await readCalls(store.read, runId)).toMatchObject([{ state: "done", result: { failed: true } }]);
  });

  test("one that does not end in its time is given up, and what it says later is nobody's", async () => {
    let late: (value: unknown) => void = () => {};
    house.tools = [
      { ...tool("terminal", "unsafe", () => new Promise((resolve) => (late = resolve))), timeoutMs: 50 },
      tool("file_write", "keyed"),
    ];
    house.play = (_request, count) => {
      if (count === 1) return { calls: [call("terminal"), call("file_write")] };
      late({ output: "I am late", labels: ["secret"] });
      return "so be it";
    };
    const { runId } = await house.send("go");
    await house.take();
    expect(told()).toEqual([expect.stringMatching(/^tool\.timed_out: .*may have taken effect/), "file_write done"]);
    const [first] = await readCalls(store.read, runId);
    expect(first).toMatchObject({ state: "done", labels: [], result: { failed: true, text: expect.stringContaining("timed_out") } });
    expect(done).toEqual(["terminal", "file_write"]);
  });

  test("one that runs while its turn is stopped leaves nothing behind, and nothing follows it", async () => {
    let runId = "";
    house.tools = [
      tool("terminal", "unsafe", async () => {
        await store.transact("stop", (tx) => stopRunIn(taskParts(store), tx, runId, "operator"), "locked");
        return { output: "done" };
      }),
      tool("file_write", "keyed"),
    ];
    house.play = () => ({ calls: [call("terminal"), call("file_write")] });
    ({ runId } = await house.send("go"));
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "failed", error: { code: "run.stopped" } });
    expect(done).toEqual(["terminal"]);
    expect(house.asked).toHaveLength(1);
    expect(await readCalls(store.read, runId)).toMatchObject([{ state: "intended", result: null }]);
    expect(await store.queue.counts()).toEqual({});
  });

  test.each([
    ["is denied", { profile: "full", deny: ["file_write"] }],
    ["needs a person's word", { profile: "full", ask: ["file_write"] }],
  ])("one that was begun before a crash and now %s is not said to be undone", async (_what, tools) => {
    house.tools = [tool("file_write", "keyed")];
    house.play = (_request, count) => (count === 1 ? { calls: [call("file_write")] } : "so be it");
    const { runId } = await house.send("go");
    await house.takeAndDieAt("tool.ran");
    house.reconfigure(configure(tools));
    await house.take();
    expect(await runOf(runId)).toMatchObject({ status: "completed" });
    expect(done).toEqual(["file_write"]);
    expect(told()).toEqual([expect.stringMatching(/^outcome unknown/)]);
    expect(await readCalls(store.read, runId)).toMatchObject([{ state: "unknown" }]);
  });
});

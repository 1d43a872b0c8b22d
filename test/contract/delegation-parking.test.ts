import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import { cancelTask } from "../../src/acts/tasks/cancel-task.ts";
import { answerApprovalIn } from "../../src/acts/wait-turn.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { DelegatingHouse, delegate, delegateTo } from "./delegating-house.ts";
import { call } from "./turning-house.ts";

const CONFIG = {
  agents: {
    main: { model: "test/model", default: true, subagents: { agents: ["ben"] } },
    ben: { model: "test/model" },
  },
};

describe.each(PLACES)("a turn that waits for tasks, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: DelegatingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new DelegatingHouse(store, CONFIG);
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const statusOf = async (id: string) => (await readRun(store.read, id))?.status;
  const replyOf = async (id: string) => (await readRun(store.read, id))?.reply?.text;
  /** The parent asks a child to add, and says what came of it. */
  const adding = (): void => {
    house.does = ({ input, answers, results }) => (input === "go" ? (answers === 0 ? delegate("add") : `got ${results.join(" ")}`) : "two");
  };

  test("holds nothing meanwhile, and goes on with what came of the child", async () => {
    adding();
    const { runId } = await house.send("go");
    await house.take();
    expect(await statusOf(runId)).toBe("waiting");
    expect(await store.queue.counts()).toEqual({ parked: 1, ready: 1 });
    const [child] = await house.tasks();
    expect(child).toMatchObject({ kind: "child", agent: "main", from: "main", goal: "add", parentRun: runId, depth: 1, root: runId });
    expect((await house.calls(runId))[0]).toMatchObject({ state: "waiting", tasks: [child?.id], result: null });
    await house.take();
    expect(await statusOf(runId)).toBe("queued");
    await house.take();
    expect(await replyOf(runId)).toBe(`got ${JSON.stringify({ task: child?.id, status: "completed", result: "two" }, null, 1)}`);
    expect((await house.calls(runId))[0]).toMatchObject({ state: "done" });
    expect((await house.told("turn.waited"))[0]?.data).toEqual({ approvals: [], tasks: [child?.id] });
  });

  test("a child that ends before its parent waits wakes it all the same", async () => {
    adding();
    const { runId } = await house.send("go");
    // The child is taken and ended between the parent's look and its parking.
    let raced = false;
    house.reached = (point) => {
      if (point === "task.opened") raced = true;
    };
    house.tools = house.delegation.map((tool) =>
      tool.name !== "delegate_task"
        ? tool
        : {
            ...tool,
            collect: async (ids, args, context) => {
              const looked = await (tool.collect as NonNullable<typeof tool.collect>)(ids, args, context);
              if (looked === null && (await store.queue.counts()).ready) await house.take();
              return looked;
            },
          },
    );
    await house.take();
    expect(raced).toBe(true);
    expect((await house.tasks())[0]?.status).toBe("completed");
    // It was woken while it ran: it is ready, and not parked for ever.
    expect(await store.queue.counts()).toEqual({ ready: 1 });
    await house.take();
    expect(await replyOf(runId)).toContain('"two"');
  });

  test.each(["task.opened", "turn.parked", "model.response.recorded", "turn.begun"] as const)(
    "a node that dies at %s leaves one child, and the parent hears of it",
    async (point) => {
      adding();
      const { runId } = await house.send("go");
      await house.takeAndDieAt(point);
      await house.takeAll();
      expect(await house.tasks()).toMatchObject([{ status: "completed", result: "two" }]);
      expect(await replyOf(runId)).toContain('"two"');
      expect(await house.told("task.opened")).toHaveLength(1);
    },
  );

  test.each(["turn.answered", "turn.committed"] as const)("a node that dies at %s in the child ends it once", async (point) => {
    adding();
    const { runId } = await house.send("go");
    await house.take();
    await house.takeAndDieAt(point);
    await house.takeAll();
    expect(await house.told("task.completed")).toHaveLength(1);
    expect(await replyOf(runId)).toContain('"two"');
  });

  test.each(["tool.settled", "model.response.recorded"] as const)(
    "a node that dies at %s while the parent takes up what came of it tells it once",
    async (point) => {
      house.does = ({ input, answers, results }) =>
        input === "go"
          ? answers === 0
            ? delegate("add")
            : answers === 1
              ? { calls: [call("task_search", { query: "add" })] }
              : `got ${results}`
          : "two";
      const { runId } = await house.send("go");
      await house.take();
      await house.take();
      await house.takeAndDieAt(point);
      await house.takeAll();
      expect(await statusOf(runId)).toBe("completed");
      expect((await house.calls(runId))[0]?.result?.text).toContain('"two"');
      expect(await house.tasks()).toHaveLength(1);
    },
  );

  test("several of one answer wait together, and the turn goes on once", async () => {
    house.does = ({ input, answers, results }) =>
      input !== "go"
        ? `did ${input}`
        : answers === 0
          ? { calls: [call("delegate_task", { goal: "a" }, "1"), call("delegate_task", { tasks: [{ goal: "b" }, { goal: "c" }] }, "2")] }
          : `got ${results.map((text) => JSON.stringify(JSON.parse(text))).join(" ")}`;
    const { runId } = await house.send("go");
    await house.take();
    await house.take();
    // One of three is done: that is no reason to look.
    expect(await store.queue.counts()).toEqual({ parked: 1, ready: 2 });
    // Two children, and the parent once more.
    expect(await house.takeAll()).toBe(3);
    const ids = (await house.tasks()).map(({ id }) => id);
    expect(await replyOf(runId)).toBe(
      `got {"task":"${ids[0]}","status":"completed","result":"did a"} {"tasks":[{"task":"${ids[1]}","status":"completed","result":"did b"},{"task":"${ids[2]}","status":"completed","result":"did c"}]}`,
    );
  });

  test("two children that end at the same moment on two nodes wake their parent", async () => {
    house.does = ({ input, answers }) =>
      input === "go" && answers === 0 ? delegate("x", { goal: undefined, tasks: [{ goal: "a" }, { goal: "b" }] }) : "ok";
    const { runId } = await house.send("go");
    await house.take();
    const both = [await house.claim("one"), await house.claim("two")].flat();
    await Promise.all(both.map((item) => house.take(item)));
    await house.takeAll();
    expect(await replyOf(runId)).toBe("ok");
  });

  test("it waits for a person and for a task at the same time, and each comes when it comes", async () => {
    house.reconfigure({
      agents: { ...CONFIG.agents, main: { ...CONFIG.agents.main, tools: { profile: "full", ask: ["agent_delegate"] } } },
    });
    house.does = ({ input, answers, results }) =>
      input !== "go"
        ? "two"
        : answers === 0
          ? { calls: [call("delegate_task", { goal: "add" }, "1"), call("agent_delegate", { agent: "ben", goal: "look" }, "2")] }
          : `got ${results.length}`;
    const { runId } = await house.send("go");
    await house.take();
    const [asked] = await house.approvals.list({ state: "asked", limit: 10 });
    expect(await house.tasks()).toHaveLength(1);
    // The child ends: the parent still waits for the person.
    await house.takeAll();
    expect(await statusOf(runId)).toBe("waiting");
    await store.transact(
      "answer",
      (tx) => answerApprovalIn(store, house.approvals, tx, { name: "operator", mayAnswer: true }, asked?.id as string, "approve"),
      "locked",
    );
    await house.takeAll();
    expect(await house.tasks()).toHaveLength(2);
    expect(await replyOf(runId)).toBe("got 2");
  });

  test("/stop of a turn that waits ends everything below it, and nothing of it is committed after that", async () => {
    house.does = ({ input, answers }) =>
      input === "go" ? delegate("deep") : input === "deep" && answers === 0 ? delegate("deeper") : "never";
    const { runId } = await house.send("go");
    await house.take();
    await house.take();
    const [deeper] = await house.claim("elsewhere");
    await store.transact("stop", (tx) => stopRunIn(house.taskParts, tx, runId, "operator"), "locked");
    expect(await store.queue.counts()).toEqual({});
    expect((await house.tasks()).map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
    const before = (await house.told("model.answered")).length;
    // The deepest runs on for a while, on another node.
    await house.take(deeper);
    expect((await house.told("model.answered")).length).toBe(before);
    expect((await house.tasks()).map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
    expect(await house.takeAll()).toBe(0);
  });

  test("a child that was cancelled is told to the parent as that", async () => {
    adding();
    const { runId } = await house.send("go");
    await house.take();
    const [child] = await house.tasks();
    await cancelTask(house.taskParts, child?.id as string, "operator");
    await house.takeAll();
    expect(await replyOf(runId)).toContain('"status": "cancelled"');
    expect(await replyOf(runId)).toContain("cancelled by operator");
  });

  test("a turn that fails ends what it alone waited for", async () => {
    house.does = ({ input }) => (input === "go" ? delegateTo("ben", "look") : "seen");
    const { runId } = await house.send("go");
    await house.take();
    house.reconfigure({ agents: { ben: { model: "test/model", default: true } } });
    // Its agent is gone: the parent's next attempt fails.
    const [child] = await house.tasks();
    await store.transact("wake", (tx) => store.queue.unpark(tx, child?.waiter as number), "locked");
    const items = await store.queue.claim("node", 5, 60_000);
    for (const item of items) if ((item.payload as { runId: string }).runId === runId) await house.take(item);
    expect(await statusOf(runId)).toBe("failed");
    expect((await house.tasks())[0]?.status).toBe("cancelled");
  });
});

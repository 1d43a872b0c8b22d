import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import { cancelTask } from "../../src/acts/tasks/cancel-task.ts";
import { openTaskIn } from "../../src/acts/tasks/open-task.ts";
import { failOverdueTasks } from "../../src/acts/tasks/overdue-tasks.ts";
import { TURN_WORK } from "../../src/acts/work-kinds.ts";
import { Dispatcher } from "../../src/drivers/dispatch/dispatcher.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { quiet } from "../turn-parts.ts";
import { DelegatingHouse, delegate } from "./delegating-house.ts";
import { call } from "./turning-house.ts";

const CONFIG = { agents: { main: { model: "test/model", default: true, subagents: { max_depth: 5 } } } };

describe.each(PLACES)("the time of tasks, on %s", (_name, makePlace) => {
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

  const open = async (goal: string, timeoutMs?: number): Promise<string> => {
    const opened = await store.transact(
      "open",
      (tx) =>
        openTaskIn(house.taskParts, tx, { kind: "api", agent: "main", from: "operator", parent: null, goal, timeoutMs: timeoutMs ?? null }),
      "locked",
    );
    if ("refused" in opened) throw opened.refused;
    return opened.id;
  };
  const ends = async () => (await house.tasks()).map(({ status, error }) => [status, error?.code ?? null]);

  test("one whose turn has not begun fails when its time is up, by the database's clock", async () => {
    const id = await open("wait", 60_000);
    await open("no hurry");
    await place.elapse(59_000);
    expect(await failOverdueTasks(house.taskParts)).toBe(0);
    await place.elapse(2_000);
    expect(await failOverdueTasks(house.taskParts)).toBe(1);
    expect(await ends()).toEqual([
      ["failed", "task.timed_out"],
      ["queued", null],
    ]);
    const [task] = await house.tasks();
    expect((await readRun(store.read, task?.run as string))?.error?.code).toBe("task.timed_out");
    expect(await store.queue.counts()).toEqual({ ready: 1 });
    expect(task?.id).toBe(id);
    expect(await failOverdueTasks(house.taskParts)).toBe(0);
  });

  test("one that waits for its own tasks fails with them", async () => {
    house.does = ({ input, answers }) => (answers > 0 ? "never" : input === "a" ? delegate("b") : delegate("c"));
    await open("a", 60_000);
    await house.take();
    await house.take();
    await place.elapse(61_000);
    await failOverdueTasks(house.taskParts);
    expect(await ends()).toEqual([
      ["failed", "task.timed_out"],
      ["cancelled", "run.stopped"],
      ["cancelled", "run.stopped"],
    ]);
    expect(await store.queue.counts()).toEqual({});
  });

  test("a turn that runs is broken off when the time of its task is up", async () => {
    const waiting = defineTool({
      name: "web_fetch",
      description: "until it is stopped",
      parameters: z.looseObject({}),
      effect: "pure",
      run: (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    house.tools = [waiting];
    house.does = () => ({ calls: [call("web_fetch")] });
    await open("slow", 300);
    await house.take();
    expect(await ends()).toEqual([["failed", "task.timed_out"]]);
  });

  test("a parent is told of a child that took too long", async () => {
    house.does = ({ input, answers, results }) => (input === "go" ? (answers === 0 ? delegate("slow") : results.join(" ")) : "never");
    const { runId } = await house.send("go");
    await house.take();
    await place.tamper(`update tasks set deadline_at = 1`);
    await failOverdueTasks(house.taskParts);
    await house.takeAll();
    expect((await readRun(store.read, runId))?.reply?.text).toContain("task.timed_out");
  });

  test("what is cancelled here stops at once where it runs, on whatever node", async () => {
    const other = await place.open();
    const id = await open("long");
    const began = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    const dispatcher = new Dispatcher({
      queue: other.queue,
      owner: "elsewhere",
      handlers: {
        [TURN_WORK]: async (_item, lost) => {
          began.resolve();
          lost.addEventListener("abort", () => stopped.resolve());
          await stopped.promise;
        },
      },
      log: quiet,
      limit: () => 4,
      // Far longer than this test may take: it is not the renewal that tells it.
      leaseMs: 3_600_000,
    });
    dispatcher.start();
    await began.promise;
    await cancelTask(house.taskParts, id, "operator");
    // On SQLite a second process is told of nothing: there is only ever one daemon on a file.
    if (place.kind === "sqlite") other.wake.hint("taken");
    await stopped.promise;
    await dispatcher.stop(0);
    expect(await ends()).toEqual([["cancelled", "run.stopped"]]);
  });

  test("W3: of a tree that grows on several nodes while it is cancelled, nothing is committed after the cancel was acknowledged", async () => {
    house.does = ({ input }) => ({
      calls: [{ id: input, tool: "delegate_task", args: JSON.stringify({ tasks: [{ goal: `${input}l` }, { goal: `${input}r` }] }) }],
    });
    const id = await open("t");
    let isOver = false;
    const node = async (name: string): Promise<void> => {
      for (let idle = 0; !(isOver && idle > 1) && idle < 1_000; ) {
        const [item] = await house.claim(name);
        if (item) await house.take(item);
        else idle++;
      }
    };
    const nodes = ["one", "two", "three"].map(node);
    // Until there is something to cut off.
    while ((await house.tasks()).length < 6) await new Promise((resolve) => setTimeout(resolve, 5));
    await cancelTask(house.taskParts, id, "operator");
    const after = (await store.ledger.read(0, 10_000)).length;
    const ended = await house.tasks();
    isOver = true;
    await Promise.all(nodes);
    const late = (await store.ledger.read(0, 10_000)).slice(after).map(({ type }) => type);
    expect(late).toEqual([]);
    // What had grown as deep as it may had ended by itself before.
    expect(ended.filter(({ status }) => status !== "cancelled" && status !== "failed")).toEqual([]);
    expect(ended.find((task) => task.id === id)?.status).toBe("cancelled");
    expect(await house.tasks()).toEqual(ended);
    expect(await store.queue.counts()).toEqual({});
  });
});

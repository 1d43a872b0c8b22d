import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import { readTask } from "../../src/records/tasks/task-rows.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { FlowingHouse, step } from "./flowing-house.ts";
import { call } from "./turning-house.ts";

const POINTS: readonly CrashPoint[] = [
  "turn.begun",
  "model.response.before",
  "model.response.recorded",
  "tool.intended",
  "tool.ran",
  "tool.settled",
  "turn.answered",
  "turn.committed",
  "step.settled",
  "task.closed",
];

describe.each(PLACES)("a workflow whose node dies, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  const houses: FlowingHouse[] = [];
  let paid: string[] = [];

  const pay = defineTool({
    name: "message_send",
    description: "Pays.",
    parameters: z.strictObject({ what: z.string() }),
    effect: "unsafe",
    run: ({ what }) => {
      paid.push(what);
      return { output: "paid" };
    },
  });

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    paid = [];
  });
  afterEach(async () => {
    for (const house of houses.splice(0)) house.remove();
    await place.remove();
  });

  /** Every node is another process: what one remembered, the next has to read. */
  function node(): FlowingHouse {
    const house = new FlowingHouse(store);
    house.tools = [...house.tools, pay];
    house.playStep = (goal, request) => {
      if (goal === "do list") return "[1, 2, 3]";
      const made = request.messages.some((message) => message.role === "tool");
      return goal.startsWith("pay") && !made ? { calls: [call("message_send", { what: goal })] } : `did ${goal}`;
    };
    houses.push(house);
    return house;
  }

  const DEFINITION = {
    keys: { l: { schema: { type: "array" } }, all: { policy: "append" } },
    steps: [
      step("list", { writes: ["l"] }),
      step("each", { needs: ["list"], foreach: "l", goal: "pay {{item}}", writes: ["all"] }),
      step("side", { needs: ["list"], writes: ["x"] }),
      step("end", { needs: ["each", "side"], reads: ["all", "x"], writes: ["sum"] }),
    ],
    outputs: ["all", "sum"],
  };

  async function ended(house: FlowingHouse, id: string): Promise<void> {
    const run = await house.run(id);
    expect(run).toMatchObject({ status: "completed", outputs: { sum: "did do end" } });
    expect((run.outputs.all as string[]).toSorted()).toEqual(["did pay 1", "did pay 2", "did pay 3"]);
    expect(run.steps.map(({ status }) => status)).toEqual(Array(7).fill("completed"));
    expect(await readTask(store.read, id)).toMatchObject({ status: "completed" });
    const tasks = await store.read.all<{
      step: string;
      status: string;
    }>`select step, status from tasks where workflow_id = ${id} and kind = 'step'`;
    expect(tasks.map(({ step: name }) => name).toSorted()).toEqual(["each[0]", "each[1]", "each[2]", "end", "list", "side"]);
    const events = await house.eventsOf(id);
    for (const { id: name } of run.steps)
      expect(
        events.filter((type) => type === `step.completed ${name}`),
        name,
      ).toHaveLength(1);
    expect(events.filter((type) => type === "workflow.completed")).toHaveLength(1);
    expect(await house.openTurns()).toEqual([]);
  }

  test.each(POINTS)("W2 W6 dies at %s in every turn: it goes on, and no step with a result runs again", async (point) => {
    const id = await node().start(DEFINITION);
    for (let deaths = 0; deaths < 40; deaths++) {
      const house = node();
      const [waiting] = await store.read.all`select id from work where state = 'ready'`;
      if (!waiting) break;
      // Not every turn comes past every point.
      await house.takeAndDieAt(point).catch((error: Error) => {
        if (!error.message.includes("was not reached")) throw error;
      });
      // One attempt that lives, so that a turn gets past the point.
      await node()
        .drain(1)
        .catch(() => {});
    }
    const last = node();
    await last.drain();
    await ended(last, id);
    // A call of which nobody saw the end is not made again: each at most once, and none is missing but for that.
    expect(new Set(paid).size).toBe(paid.length);
    if (point !== "tool.intended") expect(paid.toSorted()).toEqual(["pay 1", "pay 2", "pay 3"]);
  });

  test("W6 a node that is lost in the middle of a turn leaves it to another", async () => {
    const [first, second] = [node(), new FlowingHouse(await place.open())];
    houses.push(second);
    second.playStep = first.playStep;
    second.tools = [...second.tools, pay];
    const id = await first.start(DEFINITION);
    await first.takeAndDieAt("turn.answered");
    await second.drain();
    await ended(second, id);
    expect(first.goals).toEqual(["do list"]);
  });

  test("W2 an owner that was too slow commits nothing: the step is the other's", async () => {
    const house = node();
    const id = await house.start({ steps: [step("a", { writes: ["x"] })], outputs: ["x"] });
    const [item] = await house.claim("slow");
    const other = node();
    other.playStep = () => "the other's";
    house.playStep = async () => {
      await store.transact("its lease ends", (tx) => tx.run`update work set lease_until = 0`);
      await store.queue.reap();
      await other.drain();
      return "too late";
    };
    await house.take(item);
    expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { x: "the other's" } });
    expect((await house.eventsOf(id)).filter((type) => type === "step.completed a")).toHaveLength(1);
  });
});

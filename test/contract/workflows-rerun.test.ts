import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import { OPERATOR } from "../../src/kernel/caller.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { FlowingHouse, readsIn, step } from "./flowing-house.ts";
import { call } from "./turning-house.ts";

describe.each(PLACES)("going back in a workflow, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: FlowingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new FlowingHouse(store);
    const send = defineTool({
      name: "message_send",
      description: "Sends.",
      parameters: z.strictObject({ to: z.string() }),
      effect: "unsafe",
      run: () => ({ output: "sent" }),
    });
    house.tools = [...house.tools, send];
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const DEFINITION = {
    steps: [
      step("a", { writes: ["x"] }),
      step("b", { needs: ["a"], reads: ["x"], writes: ["y"] }),
      step("c", { needs: ["b"], reads: ["x", "y"], writes: ["z"] }),
      step("side", { writes: ["s"] }),
    ],
    outputs: ["x", "y", "z", "s"],
  };
  let round = 1;
  const play = () => {
    house.playStep = (goal, request) => {
      const made = request.messages.some((message) => message.role === "tool");
      if (goal === "do b" && !made)
        return { calls: [call("message_send", { to: "somebody" })], usage: { inputTokens: 100, outputTokens: 10 } };
      return { text: `${goal} in round ${round}`, usage: { inputTokens: 50, outputTokens: 5 } };
    };
  };

  test("W2 a new run takes over what is done, and does the named steps and all that rest on them again", async () => {
    play();
    const id = await house.start(DEFINITION, { input: { n: 1 } });
    await house.drain();
    round = 2;
    house.goals.length = 0;
    const plan = await house.rerun(id, ["b"]);
    expect(plan).toMatchObject({ reused: ["a", "side"], again: ["b", "c"] });
    const again = plan.id as string;
    expect(await house.states(again)).toEqual({ a: "completed", b: "ready", c: "waiting", side: "completed" });
    await house.drain();
    expect(new Set(house.goals)).toEqual(new Set(["do b", "do c"]));
    const run = await house.run(again);
    expect(run).toMatchObject({
      status: "completed",
      rerunOf: { id, from: ["b"] },
      input: { n: 1 },
      outputs: { x: "do a in round 1", y: "do b in round 2", z: "do c in round 2", s: "do side in round 1" },
    });
    expect(run.steps).toMatchObject([{ id: "a", reused: true }, { id: "b" }, { id: "c" }, { id: "side", reused: true }]);
    // What it goes back to is as it was.
    expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { y: "do b in round 1" } });
    const entry = await house.pools.read(OPERATOR, `run:${again}`, "x");
    expect(entry).toMatchObject({ version: 1, author: { agent: "main", step: "a" }, note: `taken over from run:${id}`, label: "trusted" });
    const told = readsIn(
      house.asked.findLast((request) =>
        request.messages.some((message) => message.role === "user" && message.text.startsWith("Goal: do c")),
      ) as never,
    );
    expect(told).toContain("do a in round 1");
    expect(told).toContain("do b in round 2");
  });

  test("a dry run tells what would be reused, done again, fired again and spent, and starts nothing", async () => {
    play();
    const id = await house.start(DEFINITION);
    await house.drain();
    const before = await store.read.all`select id from workflow_runs`;
    const plan = await house.rerun(id, ["b"], true);
    expect(plan).toEqual({
      id: null,
      reused: ["a", "side"],
      again: ["b", "c"],
      effects: [{ step: "b", tool: "message_send", effect: "unsafe", args: '{"to":"somebody"}' }],
      estimate: { calls: 3, inputTokens: 200, outputTokens: 20, cachedInputTokens: 0, costUsd: 0, unpriced: expect.any(Number) },
    });
    expect(await store.read.all`select id from workflow_runs`).toEqual(before);
    expect(await house.openTurns()).toEqual([]);
    await expect(house.rerun(id, ["nobody"], true)).rejects.toMatchObject({ code: "workflow.invalid" });
  });

  test("a run that goes on is not gone back to", async () => {
    const id = await house.start(DEFINITION);
    await expect(house.rerun(id, ["b"])).rejects.toMatchObject({ code: "workflow.running" });
  });

  test("whoever wrote upon what is done again is done again too", async () => {
    const id = await house.start({
      keys: { log: { policy: "append" } },
      steps: [step("one", { writes: ["log"] }), step("two", { writes: ["log"] }), step("three", { writes: ["log"] })],
      outputs: ["log"],
    });
    await house.drain();
    expect((await house.run(id)).outputs).toEqual({ log: ["done: do one", "done: do two", "done: do three"] });
    const plan = await house.rerun(id, ["two"]);
    expect(plan).toMatchObject({ reused: ["one"], again: ["two", "three"] });
    await house.drain();
    expect((await house.run(plan.id as string)).outputs).toEqual({ log: ["done: do one", "done: do two", "done: do three"] });
  });

  test("of a foreach, single items are done again", async () => {
    house.playStep = (goal) => (goal === "do list" ? "[1, 2, 3]" : `${goal} in round ${round}`);
    round = 1;
    const id = await house.start({
      keys: { l: { schema: { type: "array" } } },
      steps: [
        step("list", { writes: ["l"] }),
        step("each", { needs: ["list"], foreach: "l", goal: "item {{item}}" }),
        step("end", { needs: ["each"] }),
      ],
    });
    await house.drain();
    round = 2;
    house.goals.length = 0;
    const plan = await house.rerun(id, ["each[1]"]);
    await house.drain();
    expect(house.goals).toEqual(["item 2", "do end"]);
    expect((await house.run(plan.id as string)).status).toBe("completed");
    expect(await house.states(plan.id as string)).toMatchObject({ "each[0]": "completed", "each[1]": "completed", each: "completed" });
  });

  test("one that is the same run by its own key can be done again", async () => {
    const id = await house.start({ idempotency_key: "{{input.n}}", ...DEFINITION }, { input: { n: 1 } });
    await house.drain();
    const { id: again } = await house.rerun(id, ["c"]);
    expect(again).not.toBe(id);
    await house.drain();
    expect(await house.run(again as string)).toMatchObject({ status: "completed", rerunOf: { id } });
    expect(await house.start({ idempotency_key: "{{input.n}}", ...DEFINITION }, { input: { n: 1 } })).toBe(id);
  });
});

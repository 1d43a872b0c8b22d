import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Tasks } from "../../src/records/tasks/tasks.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { DelegatingHouse, delegate } from "./delegating-house.ts";
import { FlowingHouse, step } from "./flowing-house.ts";
import { OPERATOR } from "./sessions-place.ts";
import { call } from "./turning-house.ts";

/** Of so many tokens: with its quotation marks as it is stored. */
const text = (tokens: number): string => "x".repeat(tokens * 4 - 2);

describe.each(PLACES)("the relay meter on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: FlowingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new FlowingHouse(store);
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const CHAIN = {
    steps: [
      step("a", { writes: ["one"] }),
      step("b", { needs: ["a"], reads: ["one"], writes: ["two"] }),
      step("c", { needs: ["b"], reads: ["one", "two"], writes: ["three"] }),
    ],
  };
  const answers: Readonly<Record<string, string>> = { "do a": text(100), "do b": text(10), "do c": text(1) };

  test("counts what steps were shown, and what a parent would have read and written", async () => {
    house.playStep = (goal) => answers[goal] as string;
    const id = await house.start(CHAIN);
    expect((await house.run(id)).relay).toBeNull();
    await house.drain();
    expect((await house.run(id)).relay).toEqual({
      throughMemory: 210,
      throughParent: 631 + 210 + 210,
      saved: 631 + 210,
      parent: { read: 631, written: 210, handed: 210 },
    });
  });

  test("of a long value a step is shown the beginning, and what it asks for besides counts as it was answered", async () => {
    const long = text(5_000);
    house.playStep = (goal, _request, count) => {
      if (goal === "do a") return long;
      return count === 1 ? { calls: [call("context_read", { key: "one" })] } : "done";
    };
    const id = await house.start({ steps: CHAIN.steps.slice(0, 2) });
    await house.drain();
    const { relay } = await house.run(id);
    expect(relay?.throughMemory).toBeGreaterThan(2_000 + 5_000);
    expect(relay?.throughMemory).toBeLessThan(2_000 + 5_100);
    expect(relay?.parent).toMatchObject({ written: 5_000, handed: 5_000 });
  });

  test("each item of a list goes to its step, and what somebody else had left there is read by the parent too", async () => {
    house.playStep = (goal) => (goal === "do a" ? JSON.stringify(["first", "second"]) : "done");
    const id = await house.start({
      keys: { one: { schema: { type: "array" } } },
      steps: [step("a", { writes: ["one"] }), step("b", { needs: ["a"], foreach: "one", goal: "do {{item}}" })],
    });
    await house.drain();
    const { relay } = await house.run(id);
    expect(relay?.throughMemory).toBe(Math.ceil('"first"'.length / 4) + Math.ceil('"second"'.length / 4));
    expect(relay?.parent?.written).toBe(relay?.throughMemory);
  });

  test("where nothing is shared there is nothing to count", async () => {
    const id = await house.start({ shared_context: false, steps: [step("a"), step("b", { needs: ["a"] })] });
    await house.drain();
    expect((await house.run(id)).relay).toBeNull();
  });

  test("of a delegated task: what it gave back, and what a pointer would have been", async () => {
    const delegating = new DelegatingHouse(store, { agents: { main: { model: "test/model", default: true } } });
    delegating.does = ({ input, answers: count }) => (input === "go" ? (count === 0 ? delegate("add") : "done") : text(100));
    await delegating.send("go");
    await delegating.takeAll();
    const [child] = await delegating.tasks();
    const seen = new Tasks(store, delegating.agents);
    expect((await seen.read(OPERATOR, child?.id as string)).relay).toEqual({
      returned: 100,
      asPointers: expect.any(Number),
      throughMemory: 0,
    });
    expect((await seen.read(OPERATOR, child?.id as string)).relay?.asPointers).toBeLessThan(25);
    delegating.remove();
  });
});

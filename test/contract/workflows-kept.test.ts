import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Retention } from "../../src/records/tasks/retention.ts";
import { stepsOfTurns } from "../../src/records/workflows/contaminated-steps.ts";
import { removeWorkflowRuns } from "../../src/records/workflows/workflow-run-rows.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { FlowingHouse, step } from "./flowing-house.ts";

const HOUR = 3_600_000;

describe.each(PLACES)("how long runs of workflows are kept, on %s", (_name, makePlace) => {
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

  /** Tasks of whoever opened it, and of the agent that did its steps. */
  const sweep = async (keptFor: Readonly<Record<string, number>>): Promise<void> => {
    const retention = new Retention(store, (name) => keptFor[name] ?? null, removeWorkflowRuns);
    for (let round = 0; round < 3; round++) await retention.sweep();
  };
  const rows = async (): Promise<number[]> => {
    const counted = await store.read.get<{ runs: number; facts: number; steps: number }>`select
      (select cast(count(*) as bigint) from workflow_runs) as runs, (select cast(count(*) as bigint) from workflow_facts) as facts,
      (select cast(count(*) as bigint) from workflow_steps) as steps`;
    return [counted?.runs ?? 0, counted?.facts ?? 0, counted?.steps ?? 0];
  };
  const DEFINITION = { steps: [step("a", { writes: ["x"] }), step("b", { needs: ["a"], reads: ["x"] })] };

  test("a run goes with its task, and its key is free again; one that goes on stays", async () => {
    const over = await house.start(DEFINITION, { idempotency: "once" });
    await house.drain();
    expect(await house.start(DEFINITION, { idempotency: "once" })).toBe(over);
    const { run } = await house.step(over, "b");
    await place.elapse(HOUR);
    const going = await house.start(DEFINITION);
    await sweep({ operator: 2 * HOUR });
    expect(await rows()).toEqual([2, 2, 4]);
    expect(await stepsOfTurns(store.read, [run as string])).toHaveLength(1);
    await sweep({ operator: 1_000 });
    expect(await rows()).toEqual([1, 1, 2]);
    expect(await house.run(over)).toBeUndefined();
    await expect(house.resume(over)).rejects.toMatchObject({ code: "request.not_found" });
    await expect(house.rerun(over, ["a"])).rejects.toMatchObject({ code: "request.not_found" });
    // The step's own task is its agent's, and is kept; it is a step of nothing that could be run again.
    expect(await stepsOfTurns(store.read, [run as string])).toEqual([]);
    await house.drain();
    expect((await house.run(going)).status).toBe("completed");
    expect(await house.start(DEFINITION, { idempotency: "once" })).not.toBe(over);
  });

  test("one that somebody resumes in the moment in which it would go is kept whole", async () => {
    const id = await house.start({ steps: [step("a")] });
    await house.cancel(id);
    expect((await house.run(id)).status).toBe("cancelled");
    await place.elapse(HOUR);
    const transact = store.transact.bind(store);
    let resumed = false;
    const resuming: Store = Object.create(store, {
      transact: {
        value: async (name: string, body: never, isolation: never) => {
          if (!resumed) await house.resume(id);
          resumed = true;
          return transact(name, body, isolation);
        },
      },
      read: { value: store.read },
      marked: { value: store.marked },
    });
    expect(await new Retention(resuming, (name) => (name === "operator" ? 1 : null), removeWorkflowRuns).sweep()).toBe(0);
    expect(await rows()).toEqual([1, 1, 1]);
    await house.drain();
    expect((await house.run(id)).status).toBe("completed");
  });
});

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { failOverdueTasks } from "../../src/acts/tasks/overdue-tasks.ts";
import type { Tx } from "../../src/store/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { FlowingHouse, step } from "./flowing-house.ts";

const chain = (length: number) =>
  Array.from({ length }, (_, index) =>
    step(`s${index}`, { writes: [`k${index}`], ...(index === 0 ? {} : { needs: [`s${index - 1}`], reads: [`k${index - 1}`] }) }),
  );
const fan = (width: number) => [
  step("s0"),
  ...Array.from({ length: width }, (_, index) => step(`f${index}`, { needs: ["s0"] })),
  step("end", { needs: Array.from({ length: width }, (_, index) => `f${index}`) }),
];

describe.each(PLACES)("what a step costs, on %s", (_name, makePlace) => {
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

  /** Statements of the transaction that ends the next turn. */
  async function statements(): Promise<number> {
    let count = 0;
    const counted = new Proxy(store, {
      get: (target, name) => {
        if (name !== "transact") {
          const value = Reflect.get(target, name, target) as unknown;
          return typeof value === "function" ? value.bind(target) : value;
        }
        return (label: string, body: (tx: Tx) => Promise<unknown>, isolation?: "locked") =>
          target.transact(label, (tx) => body(label === "commit turn" ? counting(tx, () => count++) : tx), isolation);
      },
    });
    house.parts = { ...house.parts, store: counted };
    await house.take();
    house.parts = { ...house.parts, store };
    return count;
  }

  function counting(tx: Tx, counted: () => void): Tx {
    return new Proxy(tx, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target) as unknown;
        if (typeof value !== "function") return value;
        return (...given: unknown[]) => {
          if (["run", "get", "all", "insert"].includes(name as string)) counted();
          return value.apply(target, given);
        };
      },
    });
  }

  test("the end of a step costs the same however long the chain is, and a bounded number of statements", async () => {
    const costs: number[] = [];
    for (const length of [4, 300]) {
      const id = await house.start({ steps: chain(length) });
      await house.take();
      costs.push(await statements());
      await house.cancel(id);
    }
    expect(costs[1]).toBe(costs[0]);
    expect(costs[0]).toBeLessThanOrEqual(48);
  });

  test("the end of a branch that is not the last costs no more with many branches", async () => {
    const costs: number[] = [];
    for (const width of [4, 100]) {
      const id = await house.start({ steps: fan(width) });
      await house.take();
      costs.push(await statements());
      await house.cancel(id);
    }
    expect(costs[1]).toBe(costs[0]);
  });

  test("an attempt has so much time and no more; another attempt has as much again", async () => {
    const id = await house.start({ steps: [step("a", { timeout: "10m", retry: { attempts: 2, backoff: "fixed", delay: 60_000 } })] });
    const [item] = await house.claim("stuck");
    await place.elapse(599_000);
    expect(await failOverdueTasks(house.taskParts)).toBe(0);
    await place.elapse(2_000);
    expect(await failOverdueTasks(house.taskParts)).toBe(1);
    expect(await house.step(id, "a")).toMatchObject({ status: "ready", attempts: 2, error: { code: "task.timed_out" } });
    // Whoever had it can do nothing more for it.
    await house.take(item);
    expect(await house.step(id, "a")).toMatchObject({ status: "ready", attempts: 2 });
    await place.elapse(60_000 + 598_000);
    expect(await failOverdueTasks(house.taskParts)).toBe(0);
    await place.elapse(3_000);
    expect(await failOverdueTasks(house.taskParts)).toBe(1);
    expect(await house.step(id, "a")).toMatchObject({ status: "failed", error: { code: "task.timed_out" } });
    expect((await house.run(id)).status).toBe("failed");
  });
});

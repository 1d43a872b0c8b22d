import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Pools } from "../../src/records/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { agent, OPEN, poolsOn } from "./pool-callers.ts";

describe.each(PLACES)("the first writes of an agent on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  test("V7 nobody is over its share because its first writes come at once on two nodes", async () => {
    const nodes = [await poolsOn(store, { house: OPEN }), new Pools(await place.open())];
    for (let round = 0; round < 10; round++) {
      const caller = agent(`newcomer${round}`);
      await Promise.all(
        Array.from({ length: 6 }, (_, index) =>
          (nodes[index % 2] as Pools).write(caller, "house", [{ key: `${round}.${index}`, value: "x" }]),
        ),
      );
    }
    const { usage, usageByAgent } = await (nodes[0] as Pools).details({ ...agent("op"), kind: "operator" }, "house");
    expect(usage.entries).toBe(60);
    expect(Object.values(usageByAgent ?? {}).map(({ entries }) => entries)).toEqual(Array(10).fill(6));
  });

  test("V7 a full pool says that it is full, and not that its writer has had enough", async () => {
    const pools = await poolsOn(store, {
      house: { ...OPEN, quota: { max_entries: 2 } },
    });
    const [ann, ben] = [agent("ann"), agent("ben")];
    await pools.write(ann, "house", [{ key: "a", value: 1 }]);
    await pools.write(ben, "house", [{ key: "b", value: 1 }]);
    await expect(pools.write(ann, "house", [{ key: "c", value: 1 }])).rejects.toMatchObject({
      code: "pool.full",
      message: 'the pool "house" is full',
    });
  });
});

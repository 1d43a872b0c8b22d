import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isFailure } from "../../src/kernel/failure.ts";
import { type Random, seededRandom } from "../../src/kernel/random.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import { ReadLog } from "../../src/records/pools/read-log.ts";
import { type CommittedWork, circleIn } from "../serialization-graph.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { agent, OPEN, poolsOn } from "./pool-callers.ts";

const [CLIENTS, WORKS, ROUNDS] = [6, 10, 4];
const KEYS = ["a", "b", "c", "d"];

describe.each(PLACES)("runs that read and write what others do, on %s", (_name, makePlace) => {
  let place: StorePlace;
  beforeEach(() => {
    place = makePlace();
  });
  afterEach(() => place.remove());

  /** Reads some keys, then writes some, if all of that is fresh. Undefined: it was refused. */
  async function perform(pools: Pools, pool: string, name: string, random: Random): Promise<CommittedWork | undefined> {
    const some = (most: number): string[] =>
      KEYS.map((key) => ({ key, order: random.fraction() }))
        .sort((a, b) => a.order - b.order)
        .slice(0, 1 + Math.floor(random.fraction() * most))
        .map(({ key }) => key);
    const caller = agent(name, name);
    const log = random.fraction() < 0.5 ? new ReadLog() : undefined;
    const called = performance.now();
    const reads = new Map<string, number>();
    for (const key of some(3)) {
      reads.set(key, (await pools.read(caller, pool, key, log ? { reads: log } : {}))?.version ?? 0);
    }
    const writes = some(2).map((key) => ({ key, value: name }));
    try {
      const written = await pools.write(caller, pool, writes, { ifFresh: true, ...(log ? { reads: log } : {}) });
      return { name, reads, writes: new Map(written.map(({ key, version }) => [key, version])), called, returned: performance.now() };
    } catch (error) {
      if (isFailure(error, "pool.stale")) return undefined;
      throw error;
    }
  }

  test("V4 V8 whatever they read and write on three nodes, what was committed could have been done one after another", {
    timeout: 60_000,
  }, async () => {
    const keys = Object.fromEntries(KEYS.map((key) => [key, { policy: "last_write" }]));
    // Each round begins with a pool in which there is nothing.
    const names = Array.from({ length: ROUNDS }, (_, round) => `round${round}`);
    const first = await poolsOn(await place.open(), Object.fromEntries(names.map((name) => [name, { ...OPEN, keys }])));
    const nodes = [first, new Pools(await place.open()), new Pools(await place.open())];
    let refused = 0;
    for (const pool of names) {
      const seed = Math.floor(Math.random() * 2 ** 31);
      const history: CommittedWork[] = [];
      await Promise.all(
        Array.from({ length: CLIENTS }, async (_, client) => {
          const random = seededRandom(seed + client);
          for (let index = 0; index < WORKS; index++) {
            const done = await perform(nodes[client % nodes.length] as Pools, pool, `${pool}-c${client}-${index}`, random);
            if (done) history.push(done);
            else refused++;
          }
        }),
      );
      expect(circleIn(history), `seed ${seed}`).toBeUndefined();
      // Who is alone is never refused.
      expect(await perform(first, pool, `${pool}-alone`, seededRandom(seed)), `seed ${seed}`).toBeDefined();
    }
    expect(refused).toBeGreaterThan(0);
  });
});

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Entry, PoolChange } from "../../src/contract/pools.ts";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { isFailure } from "../../src/kernel/failure.ts";
import { type Random, seededRandom } from "../../src/kernel/random.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { isLinearizable, type Operation, type SequentialModel } from "../linearizability.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { agent, OPEN, poolsOn } from "./pool-callers.ts";

type Input =
  | { readonly read: true }
  | { readonly write: number }
  | { readonly swap: readonly [version: number | null, value: number] }
  | { readonly remove: true };
/** Version and value; null: no entry; "refused". */
type Output = readonly [version: number, value: number] | null | "refused";

/** A register with versions, as one copy would behave. */
const register: SequentialModel<{ readonly last: number; readonly value: number | null }, Input, Output> = {
  initial: { last: 0, value: null },
  step: (state, input, output) => {
    const next = (value: number | null) => ({ last: state.last + 1, value });
    const shows = (version: number, value: number) =>
      output !== null && output !== "refused" && output[0] === version && output[1] === value;
    if ("read" in input) return (state.value === null ? output === null : shows(state.last, state.value)) ? state : null;
    if ("write" in input) return shows(state.last + 1, input.write) ? next(input.write) : null;
    if ("remove" in input) {
      if (state.value === null) return output === "refused" ? state : null;
      return output === null ? next(null) : null;
    }
    const [version, value] = input.swap;
    const fits = version === (state.value === null ? null : state.last);
    if (!fits) return output === "refused" ? state : null;
    return shows(state.last + 1, value) ? next(value) : null;
  },
  key: (state) => `${state.last}:${state.value}`,
};

const pair = (entry: Entry | undefined): Output => (entry ? [entry.version, entry.value as number] : null);

async function perform(pools: Pools, client: number, key: string, input: Input): Promise<Output> {
  const caller = agent(`client${client}`);
  if ("read" in input) return pair(await pools.read(caller, "house", key));
  const write =
    "write" in input
      ? { key, value: input.write }
      : "remove" in input
        ? { key, remove: true as const }
        : { key, value: input.swap[1], ifVersion: input.swap[0] };
  try {
    const [entry] = await pools.write(caller, "house", [write]);
    return "remove" in input ? null : pair(entry);
  } catch (error) {
    if (isFailure(error, "pool.conflict") || isFailure(error, "request.not_found")) return "refused";
    throw error;
  }
}

function choose(random: Random, last: number | null): Input {
  const choice = random.fraction();
  if (choice < 0.35) return { read: true };
  if (choice < 0.55) return { write: Math.floor(random.fraction() * 1e6) };
  if (choice < 0.65) return { remove: true };
  return { swap: [last, Math.floor(random.fraction() * 1e6)] };
}

describe.each(PLACES)("many writers of a pool on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const nodes = async (definition: unknown): Promise<Pools[]> => {
    const first = await poolsOn(store, { house: definition });
    return [first, new Pools(await place.open())];
  };

  test("V1 reads, writes, compare-and-set and deletes of a key are linearizable across nodes", { timeout: 60_000 }, async () => {
    const rounds = place.kind === "sqlite" ? 15 : 8;
    const keys = Object.fromEntries(Array.from({ length: rounds }, (_, round) => [`k${round}`, { policy: "last_write" }]));
    const all = await nodes({ ...OPEN, keys });
    for (let round = 0; round < rounds; round++) {
      const seed = Math.floor(Math.random() * 2 ** 31);
      const history: Operation<Input, Output>[] = [];
      await Promise.all(
        Array.from({ length: 6 }, async (_, client) => {
          const random = seededRandom(seed + client);
          let last: number | null = null;
          for (let index = 0; index < 10; index++) {
            const input = choose(random, last);
            const called = performance.now();
            const output = await perform(all[client % 2] as Pools, client, `k${round}`, input);
            history.push({ input, output, called, returned: performance.now() });
            if (output !== "refused") last = output === null ? null : output[0];
          }
        }),
      );
      expect(isLinearizable(register, history), `seed ${seed}: ${JSON.stringify(history)}`).toBe(true);
    }
  });

  test("V3 as many compare-and-set increments land as were acknowledged", async () => {
    const all = await nodes(OPEN);
    await all[0]?.write(OPERATOR, "house", [{ key: "n", value: 0 }]);
    let acknowledged = 0;
    await Promise.all(
      Array.from({ length: 8 }, async (_, client) => {
        const pools = all[client % 2] as Pools;
        const caller = agent(`c${client}`);
        for (let index = 0; index < 10; index++) {
          const entry = (await pools.read(caller, "house", "n")) as Entry;
          const done = await pools
            .write(caller, "house", [{ key: "n", value: (entry.value as number) + 1, ifVersion: entry.version }])
            .catch((error: unknown) => {
              if (!isFailure(error, "pool.conflict")) throw error;
            });
          if (done) acknowledged++;
        }
      }),
    );
    expect(acknowledged).toBeGreaterThan(0);
    expect(await all[1]?.read(OPERATOR, "house", "n")).toMatchObject({ value: acknowledged, version: acknowledged + 1 });
  });

  test("V4 batches are serializable: a sum that every batch keeps is always whole", async () => {
    const all = await nodes(OPEN);
    const accounts = ["a", "b", "c", "d"];
    await all[0]?.write(
      OPERATOR,
      "house",
      accounts.map((key) => ({ key, value: 100 })),
    );
    const wrong: string[] = [];
    await Promise.all(
      Array.from({ length: 6 }, async (_, client) => {
        const pools = all[client % 2] as Pools;
        const random = seededRandom(client);
        const caller = agent(`c${client}`);
        for (let index = 0; index < 12; index++) {
          const [from, to] = random.fraction() < 0.5 ? ["a", "c"] : ["d", "b"];
          const [left, right] = [await pools.read(caller, "house", from as string), await pools.read(caller, "house", to as string)];
          // Named in either order: locks are taken in one.
          const writes = [
            { key: from as string, value: (left?.value as number) - 1, ifVersion: left?.version as number },
            { key: to as string, value: (right?.value as number) + 1, ifVersion: right?.version as number },
          ];
          await pools.write(caller, "house", index % 2 ? writes : writes.reverse()).catch((error: unknown) => {
            if (!isFailure(error, "pool.conflict")) throw error;
          });
          const { entries, at } = await pools.snapshot(caller, "house");
          const sum = entries.reduce((total, entry) => total + (entry.value as number), 0);
          if (sum !== 400) wrong.push(`${sum} at ${at}`);
        }
      }),
    );
    expect(wrong).toEqual([]);
  });

  test("V4 V8 two writers that each rest on what the other writes cannot both commit", async () => {
    const all = await nodes({ ...OPEN, keys: { a: { policy: "last_write" }, b: { policy: "last_write" } } });
    for (let round = 0; round < 15; round++) {
      await all[0]?.write(OPERATOR, "house", [
        { key: "a", value: "on duty" },
        { key: "b", value: "on duty" },
      ]);
      const callers = ["a", "b"].map((own) => agent(own, `round${round}`));
      // Both have read before either writes: whoever came after the other's commit would rightly rest on it, and could commit too.
      await Promise.all(
        callers.map(async (caller, index) => {
          for (const key of ["a", "b"]) expect(await all[index]?.read(caller, "house", key)).toMatchObject({ value: "on duty" });
        }),
      );
      const outcomes = await Promise.allSettled(
        callers.map((caller, index) => all[index]?.write(caller, "house", [{ key: caller.name, value: "off duty" }], { ifFresh: true })),
      );
      expect(outcomes.map(({ status }) => status).sort(), `round ${round}`).toEqual(["fulfilled", "rejected"]);
      for (const outcome of outcomes) if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "pool.stale" });
      const duty = await Promise.all(["a", "b"].map(async (key) => (await all[0]?.read(OPERATOR, "house", key))?.value));
      expect(duty.sort(), `round ${round}`).toEqual(["off duty", "on duty"]);
    }
  });

  test("V5 watchers get every operation in order, once, whole, and resume from any of them", { timeout: 60_000 }, async () => {
    const all = await nodes({ ...OPEN, keys: { hidden: { readers: [], writers: ["*"] } } });
    const start = await store.ledger.horizon();
    const watch = async (pools: Pools, after: number, until: number, whom = OPERATOR): Promise<PoolChange[]> => {
      const stop = new AbortController();
      const seen: PoolChange[] = [];
      for await (const change of await pools.watch(whom, "house", after, stop.signal)) {
        seen.push(change);
        if (seen.length === until) stop.abort();
      }
      return seen;
    };
    const operations = 60;
    const live = watch(all[1] as Pools, start, operations);
    const written: number[] = [];
    await Promise.all(
      Array.from({ length: 6 }, async (_, client) => {
        for (let index = 0; index < operations / 6; index++) {
          const keys = Array.from({ length: 1 + (index % 3) }, (_unused, part) => `c${client}-${index}-${part}`);
          const entries = await (all[client % 2] as Pools).write(
            agent(`c${client}`),
            "house",
            keys.map((key) => ({ key, value: 1 })),
          );
          written.push(entries[0]?.seq as number);
        }
      }),
    );
    const seen = await live;
    expect(seen.map((change) => change.seq)).toEqual(written.toSorted((a, b) => a - b));
    for (const change of seen) {
      const [, , index] = /c(\d+)-(\d+)-/.exec(change.data.keys[0]?.key as string) as RegExpExecArray;
      expect(change.data.keys).toHaveLength(1 + (Number(index) % 3));
    }
    for (const from of [0, 17, 42, operations - 1]) {
      const after = from === 0 ? start : (seen[from - 1]?.seq as number);
      expect(await watch(all[0] as Pools, after, operations - from)).toEqual(seen.slice(from));
    }
  });

  test("V5 a watcher is shown only keys that it may read", async () => {
    const [pools] = (await nodes({ ...OPEN, keys: { hidden: { readers: [], writers: ["alice"] } } })) as [Pools, Pools];
    const start = await store.ledger.horizon();
    const alice = agent("alice");
    await pools.write(alice, "house", [{ key: "hidden", value: 1 }]);
    await pools.write(alice, "house", [
      { key: "hidden", value: 2, ifVersion: 1 },
      { key: "seen", value: 1 },
    ]);
    const stop = new AbortController();
    for await (const change of await pools.watch(agent("bob"), "house", start, stop.signal)) {
      expect(change.data.keys.map(({ key }) => key)).toEqual(["seen"]);
      stop.abort();
    }
  });

  test("V7 quotas of bytes and entries hold whoever writes at the same time", async () => {
    const quota = { max_bytes: 1_000, max_entries: 15, agent_max_bytes: 400 };
    const all = await nodes({ ...OPEN, quota });
    const over: unknown[] = [];
    const refused = new Set<string>();
    await Promise.all(
      Array.from({ length: 8 }, async (_, client) => {
        const random = seededRandom(client);
        const pools = all[client % 2] as Pools;
        for (let index = 0; index < 15; index++) {
          const key = `k${Math.floor(random.fraction() * 25)}`;
          const caller = agent(`c${client % 4}`);
          const current = await pools.read(OPERATOR, "house", key);
          const ifVersion = current?.version ?? null;
          const write =
            current && random.fraction() < 0.2
              ? { key, remove: true as const, ifVersion }
              : { key, value: "x".repeat(Math.floor(random.fraction() * 150)), ifVersion };
          await pools.write(caller, "house", [write]).catch((error: { code: string }) => refused.add(error.code));
          const { usage, usageByAgent } = await pools.details(OPERATOR, "house");
          if (usage.bytes > 1_000 || usage.entries > 15) over.push(usage);
          for (const share of Object.values(usageByAgent ?? {})) if (share.bytes > 400) over.push(share);
        }
      }),
    );
    expect(over).toEqual([]);
    expect([...refused].sort()).toContain("pool.full");
    for (const code of refused) expect(["pool.full", "pool.conflict"]).toContain(code);
    const { usage, usageByAgent } = await (all[0] as Pools).details(OPERATOR, "house");
    const { entries } = await (all[0] as Pools).snapshot(OPERATOR, "house");
    const sizes = (of: readonly Entry[]) => ({ bytes: of.reduce((sum, entry) => sum + entry.size, 0), entries: of.length });
    expect(usage).toEqual(sizes(entries));
    expect(usageByAgent).toEqual(
      Object.fromEntries([...Map.groupBy(entries, (entry) => entry.author.agent)].map(([name, of]) => [name, sizes(of)]).sort()),
    );
  });

  test("a snapshot at an event shows what was current then, and nothing of a later one", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    const alice = agent("alice");
    const seqs: number[] = [];
    const write = async (...writes: Parameters<Pools["write"]>[2][number][]) =>
      seqs.push((await pools.write(alice, "house", writes))[0]?.seq as number);
    await write({ key: "a", value: 1 }, { key: "b", value: 1 });
    await write({ key: "a", value: 2, ifVersion: 1 }, { key: "b", remove: true });
    await write({ key: "a", value: 3, ifVersion: 2 }, { key: "c", value: 1, ttlMs: 1_000 });
    await store.transact("retract", (tx) => pools.retractIn(tx, OPERATOR, { pool: "house", key: "a", version: 3 }, "wrong"), "locked");
    const at = async (seq?: number) =>
      Object.fromEntries((await pools.snapshot(OPERATOR, "house", { at: seq })).entries.map((entry) => [entry.key, entry.value]));
    expect(await at((seqs[0] as number) - 1)).toEqual({});
    expect(await at(seqs[0])).toEqual({ a: 1, b: 1 });
    expect(await at(seqs[1])).toEqual({ a: 2 });
    expect(await at(seqs[2])).toEqual({ a: 3, c: 1 });
    expect(await at()).toEqual({ a: 2, c: 1 });
    await place.elapse(1_001);
    expect(await at()).toEqual({ a: 2 });
    await pools.sweep();
    expect(await at(seqs[2])).toEqual({ a: 3, c: 1 });
    await expect(pools.snapshot(OPERATOR, "house", { at: 1_000_000 })).rejects.toMatchObject({ code: "request.malformed" });
  });
});

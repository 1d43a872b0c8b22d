import { describe, expect, test } from "vitest";
import { type Random, seededRandom } from "../../src/kernel/random.ts";
import type { Store } from "../../src/store/store.ts";
import { isLinearizable, type Operation, type SequentialModel } from "../linearizability.ts";
import { PLACES } from "../stores.ts";

type Input =
  | { readonly read: true }
  | { readonly write: number }
  | { readonly swap: readonly [from: number, to: number] }
  | { readonly remove: true };
type Output = number | null | boolean;

/** A register that may be empty. */
const register: SequentialModel<{ readonly value: number | null }, Input, Output> = {
  initial: { value: null },
  step: (state, input, output) => {
    if ("read" in input) return output === state.value ? state : null;
    if ("write" in input) return { value: input.write };
    if ("remove" in input) return { value: null };
    const took = state.value === input.swap[0];
    if (output !== took) return null;
    return took ? { value: input.swap[1] } : state;
  },
  key: (state) => String(state.value),
};

async function perform(store: Store, key: string, input: Input): Promise<Output> {
  const value = async (reads: Pick<Store["read"], "get">) =>
    (await reads.get<{ value: number }>`select value from registers where name = ${key}`)?.value ?? null;
  if ("read" in input) return value(store.read);
  return store.transact("operation", async (tx) => {
    const put = (next: number) =>
      tx.run`insert into registers (name, value) values (${key}, ${next}) on conflict (name) do update set value = excluded.value`;
    if ("write" in input) await put(input.write);
    else if ("remove" in input) await tx.run`delete from registers where name = ${key}`;
    else {
      if ((await value(tx)) !== input.swap[0]) return false;
      await put(input.swap[1]);
    }
    return true;
  });
}

function choose(random: Random, last: number): Input {
  const choice = random.fraction();
  if (choice < 0.4) return { read: true };
  if (choice < 0.6) return { write: Math.floor(random.fraction() * 1e6) };
  if (choice < 0.65) return { remove: true };
  return { swap: [last, Math.floor(random.fraction() * 1e6)] };
}

describe.each(PLACES)("reads, writes, compare-and-set and deletes on %s", (_name, makePlace) => {
  test("are linearizable per key, from several nodes at once (V1)", { timeout: 60_000 }, async () => {
    const rounds = makePlace.name === "sqlitePlace" ? 20 : 10;
    const place = makePlace();
    try {
      const nodes = [await place.open(), await place.open()];
      await nodes[0]?.transact("table", (tx) => tx.run`create table registers (name text primary key, value bigint not null)`);
      for (let round = 0; round < rounds; round++) {
        const seed = Math.floor(Math.random() * 2 ** 31);
        const histories = new Map<string, Operation<Input, Output>[]>([
          ["a", []],
          ["b", []],
        ]);
        await Promise.all(
          Array.from({ length: 6 }, async (_, client) => {
            const random = seededRandom(seed + client);
            const seen = new Map<string, number>();
            for (let index = 0; index < 8; index++) {
              const key = random.fraction() < 0.7 ? "a" : "b";
              const input = choose(random, seen.get(key) ?? -1);
              const called = performance.now();
              const output = await perform(nodes[client % 2] as Store, `${round}${key}`, input);
              histories.get(key)?.push({ input, output, called, returned: performance.now() });
              if ("read" in input && typeof output === "number") seen.set(key, output);
            }
          }),
        );
        for (const [key, history] of histories) {
          expect(isLinearizable(register, history), `seed ${seed}, key ${key}: ${JSON.stringify(history)}`).toBe(true);
        }
      }
    } finally {
      await place.remove();
    }
  });
});

import { expect, test } from "vitest";
import { seededRandom } from "../src/kernel/random.ts";
import { isLinearizable, type Operation, type SequentialModel } from "./linearizability.ts";

type Input = { readonly write: number } | { readonly read: true } | { readonly swap: readonly [from: number, to: number] };

/** A register with compare-and-set. Outputs: the value read, or whether the swap took place. */
const register: SequentialModel<number, Input, number | boolean> = {
  initial: 0,
  step: (state, input, output) => {
    if ("write" in input) return input.write;
    if ("read" in input) return output === null || output === state ? state : null;
    const [from, to] = input.swap;
    if (output === null) return state === from ? to : state;
    return output === (state === from) ? (state === from ? to : state) : null;
  },
  key: String,
};

const op = (
  input: Input,
  called: number,
  returned: number | null,
  output: number | boolean | null = null,
): Operation<Input, number | boolean> => ({
  input,
  output,
  called,
  returned,
});
const write = (value: number, called: number, returned: number | null) =>
  op({ write: value }, called, returned, returned === null ? null : true);
const read = (value: number, called: number, returned: number) => op({ read: true }, called, returned, value);
const swap = (from: number, to: number, called: number, returned: number | null, took: boolean | null) =>
  op({ swap: [from, to] }, called, returned, took);

test.each([
  ["one after another", [write(1, 0, 1), read(1, 2, 3)]],
  ["overlapping writes, either order", [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12)]],
  ["a read that overlaps a write may see either", [write(1, 0, 10), read(0, 1, 2), read(1, 3, 4)]],
  ["an unanswered write that was seen", [write(1, 0, null), read(1, 5, 6)]],
  ["an unanswered write that never happened", [write(1, 0, null), read(0, 5, 6)]],
  ["one of two swaps wins", [swap(0, 1, 0, 5, true), swap(0, 2, 0, 5, false), read(1, 6, 7)]],
  ["an unanswered swap explains a lost one", [swap(0, 1, 0, null, null), swap(0, 2, 3, 4, false), read(1, 5, 6)]],
] as const)("accepts %s", (_name, history) => {
  expect(isLinearizable(register, history)).toBe(true);
});

test.each([
  ["a stale read", [write(1, 0, 1), read(0, 2, 3)]],
  ["a lost acknowledged write", [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]],
  ["two reads that see a write and then not", [write(1, 0, 10), read(1, 1, 2), read(0, 3, 4)]],
  ["two swaps that both win", [swap(0, 1, 0, 5, true), swap(0, 2, 0, 5, true)]],
  ["a value nobody wrote", [write(1, 0, 1), read(7, 2, 3)]],
  ["an unanswered write that comes and goes", [write(1, 0, null), read(1, 1, 2), read(0, 3, 4)]],
  ["a swap that failed although its value was there all the time", [write(5, 0, 1), swap(5, 6, 2, 3, false), read(5, 4, 5)]],
] as const)("rejects %s", (_name, history) => {
  expect(isLinearizable(register, history)).toBe(false);
});

test("accepts every history that a real register made, and rejects it when one read is forged (seed printed on failure)", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seededRandom(seed);
    let value = 0;
    const history: Operation<Input, number | boolean>[] = [];
    for (let index = 0; index < 24; index++) {
      // The effect happens at `index`; call and return lie around it, so that neighbours overlap.
      const called = index - random.fraction() * 3;
      const returned = index + random.fraction() * 3;
      const choice = random.fraction();
      if (choice < 0.4) {
        value = index + 1;
        history.push(write(value, called, returned));
      } else if (choice < 0.8) history.push(read(value, called, returned));
      else {
        const from = random.fraction() < 0.5 ? value : -1;
        history.push(swap(from, index + 100, called, returned, from === value));
        if (from === value) value = index + 100;
      }
    }
    expect(isLinearizable(register, history), `seed ${seed}`).toBe(true);
    const forged = history.findIndex((operation) => "read" in operation.input);
    if (forged < 0) continue;
    const spoiled = history.map((operation, index) => (index === forged ? { ...operation, output: 999 } : operation));
    expect(isLinearizable(register, spoiled), `seed ${seed}, forged`).toBe(false);
  }
});

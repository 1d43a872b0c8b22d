import { expect, test } from "vitest";
import { type CommittedWork, circleIn } from "./serialization-graph.ts";

type Versions = Readonly<Record<string, number>>;
const work = (name: string, reads: Versions, writes: Versions, called = 0, returned = 10): CommittedWork => ({
  name,
  reads: new Map(Object.entries(reads)),
  writes: new Map(Object.entries(writes)),
  called,
  returned,
});

test("what could have been done one after another has no circle", () => {
  expect(circleIn([])).toBeUndefined();
  // The second saw what the first had written, and may build on it.
  expect(circleIn([work("first", { a: 1, b: 1 }, { a: 2 }), work("second", { a: 2, b: 1 }, { b: 2 })])).toBeUndefined();
  expect(circleIn([work("blind", {}, { a: 2 }), work("blind too", {}, { a: 3 }), work("reader", { a: 2 }, { b: 1 })])).toBeUndefined();
});

test("two that rest on what the other replaced are a circle, also where there was nothing", () => {
  expect(circleIn([work("a", { a: 1, b: 1 }, { a: 2 }), work("b", { a: 1, b: 1 }, { b: 2 })])).toEqual(["a", "b"]);
  expect(circleIn([work("a", { b: 0 }, { a: 1 }), work("b", { a: 0 }, { b: 1 })])).toEqual(["a", "b"]);
});

test("a lost update is a circle, and so is one over three", () => {
  expect(circleIn([work("one", { n: 1 }, { n: 2 }), work("two", { n: 1 }, { n: 3 })])).toEqual(["one", "two"]);
  expect(circleIn([work("a", { b: 1 }, { a: 2 }), work("b", { c: 1 }, { b: 2 }), work("c", { a: 1 }, { c: 2 })])).toHaveLength(3);
});

test("whoever began after another had returned must have seen it", () => {
  expect(circleIn([work("writer", {}, { a: 1 }, 0, 1), work("late", { a: 0 }, { b: 1 }, 2, 3)])).toEqual(["writer", "late"]);
  expect(circleIn([work("writer", {}, { a: 1 }, 0, 3), work("meanwhile", { a: 0 }, { b: 1 }, 2, 4)])).toBeUndefined();
});

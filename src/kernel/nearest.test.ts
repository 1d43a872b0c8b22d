import { expect, test } from "vitest";
import { didYouMean, nearest } from "./nearest.ts";

const KEYS = ["model", "personality", "agents", "unrouted", "store", "server"];

test.each([
  ["modle", "model"],
  ["personalty", "personality"],
  ["Agents", "agents"],
  ["sever", "server"],
])("%s was probably meant to be %s", (word, meant) => {
  expect(nearest(word, KEYS)).toBe(meant);
});

test("a word unlike all others has no nearest name", () => {
  expect(nearest("frobnicate", KEYS)).toBeUndefined();
  expect(didYouMean("x", [])).toBe("");
});

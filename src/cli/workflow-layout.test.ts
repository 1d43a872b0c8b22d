import { expect, test } from "vitest";
import type { RunStepView } from "../contract/workflows.ts";
import { layOut } from "./workflow-layout.ts";

const step = (id: string, ...needs: string[]): RunStepView => ({
  id,
  needs,
  agent: null,
  status: "waiting",
  attempts: 0,
  startedAt: null,
  endedAt: null,
  error: null,
  task: null,
  run: null,
});
const drawn = (...steps: RunStepView[]): string[] => layOut(steps).map(({ step: { id }, branch }) => `${branch}${id}`);

test("a chain stays at one height, in whatever order it is written", () => {
  expect(drawn(step("c", "b"), step("b", "a"), step("a"))).toEqual(["a", "b", "c"]);
});

test("branches hang beside each other, with what follows on each, and what they meet in stands where they parted", () => {
  const steps = [step("a"), step("b1", "a"), step("b2", "b1"), step("c", "a"), step("d", "b2", "c"), step("e", "d")];
  expect(drawn(...steps)).toEqual(["a", "├ b1", "│ b2", "└ c", "d", "e"]);
});

test("two that rest on the same branches are branches themselves", () => {
  const steps = [step("a"), step("b"), step("c", "a", "b"), step("d", "a", "b"), step("e", "c", "d", "a")];
  expect(drawn(...steps)).toEqual(["├ a", "└ b", "├ c", "└ d", "e"]);
});

test("items stand under the step that they are items of", () => {
  expect(drawn(step("a"), step("b", "a"), step("b[0]"), step("b[1]"), step("c", "b"))).toEqual(["a", "b", "  ├ b[0]", "  └ b[1]", "c"]);
});

test("a thousand steps in a row, and a thousand side by side, are drawn at once", () => {
  const chain = Array.from({ length: 1_000 }, (_, index) => step(`s${index}`, ...(index === 0 ? [] : [`s${index - 1}`])));
  expect(drawn(...chain.toReversed())).toEqual(chain.map(({ id }) => id));
  const fan = Array.from({ length: 998 }, (_, index) => step(`s${index}`, "a"));
  const lines = drawn(step("a"), ...fan, step("z", ...fan.map(({ id }) => id)));
  expect([lines[0], lines[1], lines[998], lines[999]]).toEqual(["a", "├ s0", "└ s997", "z"]);
});

import { expect, test } from "vitest";
import { type StepState, workflow } from "../../contract/workflows.ts";
import { compileWorkflow } from "./compile.ts";
import { rerunPlan } from "./rerun.ts";

const compiled = compileWorkflow(
  workflow.parse({
    name: "w",
    steps: [
      { id: "list", writes: ["k"] },
      { id: "audit", needs: ["list"], foreach: "k" },
      { id: "report", needs: ["audit"] },
      { id: "aside" },
    ].map((step) => ({ goal: "g", ...step })),
  }),
);
const done: Record<string, StepState> = {
  list: "completed",
  audit: "completed",
  report: "completed",
  aside: "skipped",
  "audit[0]": "completed",
  "audit[1]": "completed",
};
const again = (states: Record<string, StepState>, ...from: string[]) => rerunPlan(compiled, new Map(Object.entries(states)), from);

test("what is named runs again with all that rests on it; everything else is reused", () => {
  expect(again(done, "report")).toEqual({ reused: ["list", "aside", "audit"], again: ["report"] });
  expect(again(done, "audit")).toEqual({ reused: ["list", "aside"], again: ["audit", "report"] });
  expect(again(done, "list")).toEqual({ reused: ["aside"], again: ["list", "audit", "report"] });
  expect(again(done, "aside", "report")).toEqual({ reused: ["list", "audit"], again: ["aside", "report"] });
});

test("what was not done runs again too, wherever it stands", () => {
  expect(again({ ...done, aside: "failed" }, "report")).toEqual({ reused: ["list", "audit"], again: ["aside", "report"] });
  expect(again({ ...done, list: "cancelled" }, "aside")).toEqual({ reused: [], again: ["list", "aside", "audit", "report"] });
});

test("a foreach named by an item keeps the others; so does one that has failed at an item", () => {
  expect(again(done, "audit[1]")).toEqual({ reused: ["list", "aside", "audit[0]"], again: ["audit", "report", "audit[1]"] });
  const failed: Record<string, StepState> = { ...done, audit: "failed", "audit[1]": "failed", report: "cancelled" };
  expect(again(failed, "report")).toEqual({ reused: ["list", "aside", "audit[0]"], again: ["audit", "report", "audit[1]"] });
  expect(again(failed, "audit")).toEqual({ reused: ["list", "aside"], again: ["audit", "report"] });
});

test("items of a list that is made anew are not kept", () => {
  expect(again(done, "audit[1]", "list")).toEqual({ reused: ["aside"], again: ["list", "audit", "report"] });
});

test.each(["reprot", "audit[7]", "report[0]", ""])("a step that there is not is refused: %s", (id) => {
  expect(() => again(done, id)).toThrow(
    expect.objectContaining({ code: "workflow.invalid", message: expect.stringContaining(`there is no step ${id}`) }),
  );
});

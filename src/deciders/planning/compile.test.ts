import { expect, test } from "vitest";
import { workflow } from "../../contract/workflows.ts";
import { compileWorkflow, hasConditions } from "./compile.ts";
import { loadConditions } from "./load-conditions.ts";

const defined = (steps: object[]) => workflow.parse({ name: "w", steps: steps.map((step) => ({ goal: "g", ...step })) });

test("every step knows whom it needs, who needs it, and its place behind all it needs", () => {
  const { steps, order, first, writers } = compileWorkflow(
    defined([
      { id: "last", needs: ["left", "right", "left"] },
      { id: "left", needs: ["start"], writes: ["k"] },
      { id: "right", needs: ["start"], writes: ["k", "l"] },
      { id: "start" },
    ]),
  );
  expect(order).toEqual(["start", "left", "right", "last"]);
  expect(first).toEqual(["start"]);
  expect(steps.get("last")).toMatchObject({ needs: ["left", "right"], dependents: [], order: 3 });
  expect(steps.get("start")).toMatchObject({ needs: [], dependents: ["left", "right"], order: 0, condition: null });
  expect([...writers]).toEqual([
    ["k", ["left", "right"]],
    ["l", ["right"]],
  ]);
});

test("a foreach also looks at who writes its list, however far before", () => {
  const { steps } = compileWorkflow(
    defined([
      { id: "list", writes: ["things"] },
      { id: "between", needs: ["list"] },
      { id: "each", needs: ["between"], foreach: "things" },
    ]),
  );
  expect(steps.get("each")?.looksAt).toEqual(["between", "list"]);
});

test.each([
  ["two steps have the same id", [{ id: "a" }, { id: "a" }]],
  ["a needs b, which does not exist", [{ id: "a", needs: ["b"] }]],
  ["in a circle", [{ id: "a", needs: ["b"] }, { id: "b", needs: ["a"] }, { id: "c" }]],
])("refuses what cannot be ordered: %s", (message, steps) => {
  expect(() => compileWorkflow(defined(steps))).toThrow(
    expect.objectContaining({ code: "workflow.invalid", message: expect.stringContaining(message) }),
  );
});

test("conditions are compiled once, and only a workflow that has some needs CEL", async () => {
  const definition = defined([{ id: "a", when: "input.x" }]);
  expect([hasConditions(definition), hasConditions(defined([{ id: "a" }]))]).toEqual([true, false]);
  expect(() => compileWorkflow(definition)).toThrow("compiled without conditions");
  expect(compileWorkflow(definition, await loadConditions()).steps.get("a")?.condition?.source).toBe("input.x");
  expect(() => compileWorkflow(definition, { compile: () => ({ problem: "unreadable", offset: 0 }) })).toThrow(
    "`when` of the step a: unreadable",
  );
});

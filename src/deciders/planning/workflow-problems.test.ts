import { describe, expect, test } from "vitest";
import { workflow } from "../../contract/workflows.ts";
import { loadConditions } from "./load-conditions.ts";
import { workflowProblems } from "./workflow-problems.ts";

const conditions = await loadConditions();

/** `severity code path: message`, in order. */
function problemsOf(steps: object[], more: object = {}, agents?: string[]): string[] {
  const definition = workflow.parse({ name: "w", steps: steps.map((step) => ({ goal: "g", ...step })), ...more });
  const found = workflowProblems(definition, { conditions, ...(agents ? { agents } : {}) });
  expect(found.filter(({ fix }) => fix === "")).toEqual([]);
  return found.map(({ severity, code, path, message }) => `${severity} ${code} ${path.join(".")}: ${message}`);
}

test("a sound workflow has no problems", () => {
  const steps = [
    { id: "list", writes: ["things"], agent: "main", goal: "{{input.what}}" },
    { id: "each", needs: ["list"], foreach: "things", reads: ["things"], writes: ["notes"], max_parallel: 3, goal: "{{item.name}}" },
    { id: "sum", needs: ["each"], reads: ["notes", "things"], writes: ["report"], when: "steps.each.status == 'completed' && input.sum" },
  ];
  const more = {
    keys: { things: { schema: { type: "array" } }, notes: { policy: "append" } },
    outputs: ["report"],
    idempotency_key: "sum-{{input.what}}",
  };
  expect(problemsOf(steps, more, ["main"])).toEqual([]);
});

describe("steps", () => {
  test("an unknown one in needs, with the nearest name", () => {
    expect(problemsOf([{ id: "research" }, { id: "write", needs: ["reserch"] }, { id: "x", needs: ["zebra"] }])).toEqual([
      'error workflow.unknown_step steps.1.needs.0: there is no step reserch (did you mean "research"?)',
      "error workflow.unknown_step steps.2.needs.0: there is no step zebra",
    ]);
  });

  test("one that stands twice", () => {
    expect(problemsOf([{ id: "a" }, { id: "b" }, { id: "a" }])).toEqual([
      "error workflow.duplicate_step steps.2.id: the step a stands here twice",
    ]);
  });

  test("each circle, by its names", () => {
    const steps = [
      { id: "free" },
      { id: "a", needs: ["c"] },
      { id: "b", needs: ["a"] },
      { id: "c", needs: ["free", "b"] },
      { id: "self", needs: ["self"] },
    ];
    expect(problemsOf(steps)).toEqual([
      "error workflow.cycle steps.2.needs.0: steps need each other in a circle: a needs c needs b needs a",
      "error workflow.cycle steps.4.needs.0: the step self needs itself",
    ]);
  });

  test("an agent that there is not, where the agents are known", () => {
    const steps = [{ id: "a", agent: "coder" }, { id: "b", agent: "codr" }, { id: "c" }];
    expect(problemsOf(steps, {}, ["coder"])).toEqual([
      'error workflow.unknown_agent steps.1.agent: there is no agent codr (did you mean "coder"?)',
    ]);
    expect(problemsOf(steps)).toEqual([]);
  });

  test("a limit on items without items", () => {
    expect(problemsOf([{ id: "a", max_parallel: 2 }])).toEqual([
      "error workflow.no_foreach steps.0.max_parallel: `max_parallel` is for the items of a `foreach`, and there is none",
    ]);
  });

  test("templates that name nothing, in goals and in the key of a run", () => {
    expect(problemsOf([{ id: "a", goal: "{{inputs.x}} {{item}} {{input.ok}}" }], { idempotency_key: "{{item}}" })).toEqual([
      "error workflow.bad_template steps.0.goal: {{inputs.x}} names nothing: write {{input.<name>}} or {{item}}",
      "error workflow.bad_template steps.0.goal: {{item}} stands in a step without `foreach`",
      "error workflow.bad_template idempotency_key: {{item}} stands in a step without `foreach`",
    ]);
  });

  test("memory that is switched off and used", () => {
    expect(
      problemsOf(
        [
          { id: "a", writes: ["k"] },
          { id: "b", needs: ["a"], reads: ["k"], foreach: "k" },
        ],
        { shared_context: false },
      ),
    ).toEqual([
      "error workflow.no_memory steps.0.writes: `writes` needs the shared memory, and `shared_context` is false",
      "error workflow.no_memory steps.1.reads: `reads` needs the shared memory, and `shared_context` is false",
      "error workflow.no_memory steps.1.foreach: `foreach` needs the shared memory, and `shared_context` is false",
    ]);
  });
});

describe("keys that are read", () => {
  test("nobody writes them: reads, foreach, outputs", () => {
    const steps = [
      { id: "a", writes: ["report"] },
      { id: "b", needs: ["a"], reads: ["raport"], foreach: "items" },
    ];
    expect(problemsOf(steps, { outputs: ["reprot"] })).toEqual([
      'error workflow.unwritten_key steps.1.reads.0: no step writes raport (did you mean "report"?)',
      "error workflow.unwritten_key steps.1.foreach: no step writes items",
      'error workflow.unwritten_key outputs.0: no step writes reprot (did you mean "report"?)',
    ]);
  });

  test("in a persistent pool they may be there already", () => {
    expect(problemsOf([{ id: "a", reads: ["facts"] }], { pool: "house", outputs: ["facts"] })).toEqual([
      "warning workflow.unwritten_key steps.0.reads.0: no step writes facts: it must be in the pool house already",
      "warning workflow.unwritten_key outputs.0: no step writes facts: it must be in the pool house already",
    ]);
  });

  test("nothing orders the reader and the writer", () => {
    const steps = [
      { id: "a", writes: ["k"] },
      { id: "b", reads: ["k"] },
      { id: "c", needs: ["a"] },
      { id: "d", needs: ["c"], reads: ["k"] },
    ];
    const said = "workflow.unordered_read steps.1.reads.0: b reads k, which a writes, and nothing says who comes first";
    expect(problemsOf(steps)).toEqual([`error ${said}`]);
    expect(problemsOf(steps, { pool: "house" })).toEqual([`warning ${said}`]);
  });

  test("one writer came before, another may come at the same time", () => {
    const steps = [
      { id: "a", writes: ["k"] },
      { id: "b", needs: ["a"], writes: ["k"] },
      { id: "c", needs: ["a"], reads: ["k"] },
    ];
    expect(problemsOf(steps)).toEqual([
      "warning workflow.unordered_read steps.2.reads.0: c reads k, which b writes, and nothing says who comes first",
    ]);
  });

  test("they are written only afterwards, or by the reader itself", () => {
    const steps = [
      { id: "a", reads: ["k"] },
      { id: "b", needs: ["a"], writes: ["k"] },
      { id: "own", reads: ["l"], writes: ["l"] },
    ];
    expect(problemsOf(steps)).toEqual([
      "error workflow.read_before_write steps.0.reads.0: a reads k before b writes it",
      "error workflow.read_before_write steps.2.reads.0: own reads l before anybody has written it",
    ]);
  });

  test("a step may go on with what one before it wrote", () => {
    expect(
      problemsOf([
        { id: "a", writes: ["k"] },
        { id: "b", needs: ["a"], reads: ["k"], writes: ["k"] },
      ]),
    ).toEqual([]);
  });

  test("declared and never used", () => {
    expect(problemsOf([{ id: "a", writes: ["report"] }], { keys: { raport: {}, report: {} } })).toEqual([
      "warning workflow.unused_key keys.raport: no step reads or writes raport",
    ]);
    expect(problemsOf([{ id: "a", writes: ["report"] }], { keys: { raport: {} } })).toEqual([
      'warning workflow.unused_key keys.raport: no step reads or writes raport (did you mean "report"?)',
    ]);
  });
});

describe("two writers of one key", () => {
  const two = [{ id: "start" }, { id: "a", needs: ["start"], writes: ["x", "k"] }, { id: "b", needs: ["start"], writes: ["k"] }];
  const said =
    "error workflow.parallel_writers steps.2.writes.0: a and b both write k, whose policy is reject, and may run at the same time";

  test("in branches that may run at the same time, unless the key takes several", () => {
    expect(problemsOf(two)).toEqual([said]);
    expect(problemsOf(two, { keys: { k: { policy: "reject" } } })).toEqual([said]);
    for (const policy of ["last_write", "append", "merge", "max", "min", "union"])
      expect(problemsOf(two, { keys: { k: { policy } } })).toEqual([]);
  });

  test("one after the other, however far away, is no problem", () => {
    const ordered = [
      { id: "a", writes: ["k"] },
      { id: "between", needs: ["a"] },
      { id: "b", needs: ["between"], reads: ["k"], writes: ["k"] },
    ];
    expect(problemsOf(ordered)).toEqual([]);
  });

  test("of which one is always skipped is no problem", () => {
    const either = (one: string, other: string) =>
      problemsOf([
        { id: "a", writes: ["k"], when: one },
        { id: "b", writes: ["k"], when: other },
      ]);
    expect(either("input.fast", "!input.fast")).toEqual([]);
    expect(either("!(input.n > 1)", "input.n > 1")).toEqual([]);
    expect(either("input.fast", "input.slow")).toHaveLength(1);
    expect(either("input.a || input.b", "!input.a || input.b")).toHaveLength(1);
  });

  test("all items of a foreach", () => {
    const list = { list: { policy: "append" } };
    const steps = [
      { id: "l", writes: ["list"] },
      { id: "each", needs: ["l"], foreach: "list", max_parallel: 1, writes: ["k"] },
    ];
    expect(problemsOf(steps, { keys: list })).toEqual([
      "error workflow.parallel_writers steps.1.writes.0: all items of each write k, whose policy is reject",
    ]);
    expect(problemsOf(steps, { keys: { ...list, k: { policy: "append" } } })).toEqual([]);
  });

  test("in a persistent pool, where the config says what holds for a key", () => {
    expect(problemsOf(two, { pool: "house" })).toEqual([said.replace("error", "warning")]);
  });
});

describe("what holds for keys", () => {
  const list = [
    { id: "a", writes: ["k"] },
    { id: "each", needs: ["a"], foreach: "k" },
  ];
  test("a list must be one, and is where nothing else is said", () => {
    const of = (k?: object) => problemsOf(list, k ? { keys: { k } } : {});
    const warned = ["warning workflow.no_list steps.1.foreach: nothing says that k holds a list"];
    expect(of()).toEqual([]);
    expect(of({ policy: "last_write" })).toEqual([]);
    expect(of({ policy: "merge" })).toEqual(warned);
    expect(problemsOf(list.map((each) => (each.foreach ? { ...each, when: "outputs.k != 'none'" } : each)))).toEqual(warned);
    expect(of({ schema: { type: "object" } })).toEqual(["error workflow.no_list steps.1.foreach: by its schema, k holds no list"]);
    for (const sound of [
      { schema: { type: "array" } },
      { schema: { type: ["array", "null"] } },
      { schema: { minItems: 1 } },
      { policy: "append" },
      { policy: "union" },
    ])
      expect(of(sound)).toEqual([]);
  });

  test("of a persistent pool they stand in the config", () => {
    expect(problemsOf(list, { pool: "house" })).toEqual([]);
    expect(problemsOf(list, { pool: "house", keys: { k: { schema: { type: "array" } } } })).toEqual([
      "warning workflow.unused_keys keys: what holds for the keys of the pool house is written where the pool is",
    ]);
  });
});

describe("when", () => {
  test("that cannot be read", () => {
    expect(
      problemsOf([
        { id: "a", when: "input.x = 3" },
        { id: "b", when: "foo" },
      ]),
    ).toEqual([
      expect.stringMatching(/^error workflow.bad_condition steps.0.when: .*\(at character 9\)$/),
      "error workflow.bad_condition steps.1.when: Unknown variable: foo; a condition knows input, outputs and steps",
    ]);
  });

  test("that names steps which are not there, or not done when it is asked", () => {
    const steps = [
      { id: "first" },
      { id: "b", when: "steps.frist.attempts > 1" },
      { id: "c", when: "steps.first.attempts > 1" },
      { id: "d", when: "steps.d.attempts > 1" },
    ];
    expect(problemsOf(steps)).toEqual([
      'error workflow.unknown_step steps.1.when: there is no step frist (did you mean "first"?)',
      "error workflow.unordered_condition steps.2.when: c asks about first, and nothing says that it comes first",
      "error workflow.unordered_condition steps.3.when: d asks about itself, before it has begun",
    ]);
  });

  test("that names keys which nobody writes, or not before", () => {
    const steps = [
      { id: "a", writes: ["k"] },
      { id: "b", when: "outputs.k != null" },
      { id: "c", needs: ["a"], when: "outputs.kk != null" },
      { id: "d", needs: ["a"], when: "outputs.k != null" },
    ];
    expect(problemsOf(steps)).toEqual([
      "error workflow.unordered_read steps.1.when: b reads k, which a writes, and nothing says who comes first",
      'error workflow.unwritten_key steps.2.when: no step writes kk (did you mean "k"?)',
    ]);
  });
});

test("a thousand steps with many keys are looked through in a moment", () => {
  const keys = Array.from({ length: 100 }, (_, key) => `k${key}`);
  const steps = Array.from({ length: 1_000 }, (_, index) => ({
    id: `s${index}`,
    needs: index === 0 ? [] : [`s${index - 1}`],
    reads: index === 0 ? [] : keys,
    writes: keys,
  }));
  expect(problemsOf(steps)).toEqual([]);
});

test("so are many thousands of mistakes: names are suggested for the first of them, and ten circles are enough", () => {
  const near = (index: number) => Array.from({ length: 100 }, (_, other) => `step-${index}-${other}x`);
  const unknown = Array.from({ length: 200 }, (_, index) => ({ id: `step-${index}`, needs: near(index) }));
  const told = problemsOf(unknown);
  expect(told).toHaveLength(20_000);
  expect(told.filter((problem) => problem.includes("did you mean"))).toHaveLength(50);
  const dense = Array.from({ length: 300 }, (_, index) => ({
    id: `s${index}`,
    needs: Array.from({ length: 300 }, (_each, other) => `s${other}`),
  }));
  expect(problemsOf(dense)).toHaveLength(10);
});

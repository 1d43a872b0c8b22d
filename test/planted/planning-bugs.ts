import type { PlantedBug } from "./bugs.ts";

const PLAN = "src/deciders/planning/plan.ts";
const KEYS = "src/deciders/planning/key-problems.ts";
const USES = "src/deciders/planning/condition-uses.ts";
const played = { tests: ["test/planning-properties.test.ts"] };
const rules = { tests: ["src/deciders/planning/plan.test.ts"] };
const found = { tests: ["src/deciders/planning/workflow-problems.test.ts"] };
const asked = { tests: ["src/deciders/planning/conditions.test.ts"] };

/** Bugs in what may start next, and in what is found before. */
export const PLANNING_BUGS: readonly PlantedBug[] = [
  {
    name: "planning: a step starts while one that it needs still runs",
    file: PLAN,
    from: "if (!isStepOver(state)) open ??= need;",
    to: 'if (state === "waiting") open ??= need;',
    ...played,
  },
  {
    name: "planning: a step starts on one that was cancelled",
    file: PLAN,
    from: 'if (state === "failed" || state === "cancelled")',
    to: 'if (state === "failed")',
    ...played,
  },
  {
    name: "planning: a step that was skipped keeps others waiting",
    file: PLAN,
    from: "if (!isStepOver(state)) open ??= need;",
    to: 'if (!isStepOver(state) || state === "skipped") open ??= need;',
    ...played,
  },
  {
    name: "planning: a step that is ready is started again",
    file: PLAN,
    from: 'return state === "waiting" || (state === "review"',
    to: 'return state === "waiting" || state === "ready" || (state === "review"',
    ...rules,
  },
  {
    name: "planning: one item more than allowed runs at once",
    file: PLAN,
    from: "(step.max_parallel ?? AT_ONCE) - counts.active)",
    to: "(step.max_parallel ?? AT_ONCE) - counts.active + 1)",
    ...played,
  },
  {
    name: "planning: all items of a list begin at once, however many",
    file: PLAN,
    from: "(step.max_parallel ?? AT_ONCE) - counts.active)",
    to: "(step.max_parallel ?? MAX_ITEMS) - counts.active)",
    ...rules,
  },
  {
    name: "planning: the first item that fails ends its step while others run",
    file: PLAN,
    from: "  if (open === 0) return",
    to: "  if (open === 0 || counts.failed > 0) return",
    ...played,
  },
  {
    name: "planning: a paused run starts what becomes ready",
    file: PLAN,
    from: '  if (facts.paused) return { step: id, action: "wait", because: "the run is paused" };\n',
    to: "",
    ...played,
  },
  {
    name: "planning: a step starts without the person who must let it through",
    file: PLAN,
    from: 'compiled.step.review === "human" && !facts.approved?.has(id)',
    to: 'compiled.step.review === "human" && facts.approved?.has(id) === false',
    ...rules,
  },
  {
    name: "planning: a list that is gone is taken for an empty one",
    file: PLAN,
    from: 'writers.length > 0 && writers.every((writer) => stateOf(facts, writer) === "skipped")',
    to: "writers.length > 0",
    ...rules,
  },
  {
    name: "planning: what rests on a step that runs again is reused",
    file: "src/deciders/planning/rerun.ts",
    from: "const resting = new Set(restsOn(workflow, begun));",
    to: "const resting = new Set<string>();",
    tests: ["src/deciders/planning/rerun.test.ts", "test/planning-properties.test.ts"],
  },
  {
    name: "planning: a text from an input is a template again",
    file: "src/deciders/planning/templates.ts",
    from: "    return text;\n",
    to: '    return text.includes("{{") ? renderTemplate(text, values) : text;\n',
    tests: ["src/deciders/planning/templates.test.ts"],
  },
  {
    name: "planning: a template grows as long as it likes",
    file: "src/deciders/planning/templates.ts",
    from: "if (length > max)",
    to: "if (length > max * 1_000)",
    tests: ["src/deciders/planning/templates.test.ts"],
  },
  {
    name: "planning: a template finds what an object inherits",
    file: "src/deciders/planning/templates.ts",
    from: "if (!Object.hasOwn(value, part))",
    to: "if (!(part in value))",
    tests: ["src/deciders/planning/templates.test.ts"],
  },
  {
    name: "planning: a condition may use regular expressions",
    file: USES,
    from: '  ["matches", "`matches` is not available: use startsWith, endsWith or contains"],\n',
    to: "",
    ...asked,
  },
  {
    name: "planning: loops of a condition stand in each other",
    file: USES,
    from: "for (const part of node.args[2]) visit(part, true);",
    to: "for (const part of node.args[2]) visit(part, inLoop);",
    ...asked,
  },
  {
    name: "planning: a loop of a condition goes over whatever there is",
    file: "src/deciders/planning/condition-values.ts",
    from: "loops > 0 && (",
    to: "loops > 3 && (",
    ...asked,
  },
  {
    name: "planning: a key that two write at once is let pass",
    file: KEYS,
    from: "if (other === undefined) return found;",
    to: "if (other === undefined || true) return found;",
    ...found,
  },
  {
    name: "planning: items that all write one key are let pass",
    file: KEYS,
    from: "      if (step.foreach !== undefined)\n",
    to: "      if (step.foreach !== undefined && step.max_parallel !== 1)\n",
    ...found,
  },
  {
    name: "planning: a key is read although nothing says that it is written before",
    file: KEYS,
    from: "  if (beside !== undefined) {",
    to: "  if (beside !== undefined && isWritten) {",
    ...found,
  },
  {
    name: "planning: needs of needs do not order two writers",
    file: "src/deciders/planning/step-order.ts",
    from: "set |= further | only(place);",
    to: "set |= only(place);",
    ...found,
  },
  {
    name: "planning: every misspelt name is compared with every other",
    file: "src/deciders/planning/suggest.ts",
    from: "made++ < MOST ?",
    to: "made++ >= 0 ?",
    ...found,
  },
  {
    name: "workflow files: a link leads out of their folder",
    file: "src/settings/load-workflow.ts",
    from: "return dirname(realpathSync(file)) === realpathSync(dirname(file));",
    to: "return true;",
    tests: ["src/settings/load-workflow.test.ts"],
  },
  {
    name: "workflow files: one of any size is read",
    file: "src/settings/load-workflow.ts",
    from: "if (found.size > MAX_WORKFLOW_BYTES)",
    to: "if (found.size > MAX_WORKFLOW_BYTES * 1_000)",
    tests: ["src/settings/load-workflow.test.ts"],
  },
  {
    name: "planning: a foreach goes over whatever text its writer answers",
    file: "src/acts/workflows/start-workflow.ts",
    from: "withLists(workflow.definition)",
    to: "workflow.definition",
    tests: ["test/contract/workflows-answers.test.ts"],
    filter: "is asked for as a list",
  },
  {
    name: "planning: a list is asked for that a condition may have no use for",
    file: "src/deciders/planning/with-lists.ts",
    from: " || when !== undefined",
    to: "",
    tests: ["src/deciders/planning/workflow-problems.test.ts"],
  },
];

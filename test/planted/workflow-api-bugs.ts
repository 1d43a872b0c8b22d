import type { PlantedBug } from "./bugs.ts";

const ROUTES = "src/edges/api/workflows-routes.ts";
const STARTING = "src/edges/api/workflow-to-start.ts";
const tests = ["test/scenarios/workflows.test.ts"];
const forAgents = { tests, filter: "an agent starts one within its rights" };

const RIGHTS = ["test/scenarios/workflow-rights.test.ts"];

/** Bugs that show to whoever runs workflows, over HTTP or at the command line. */
export const WORKFLOW_API_BUGS: readonly PlantedBug[] = [
  {
    name: "workflows: outputs and lists tell an agent of pools that it may not read",
    file: "src/acts/workflows/values-of.ts",
    from: "await pools.readableIn(tx, starter, pool, keys)",
    to: "keys",
    tests: RIGHTS,
    filter: "tells it nothing of a pool",
  },
  {
    name: "workflows: one by an agent's token stands below nobody",
    file: STARTING,
    from: "above: belowAgent(agents, caller.name)",
    to: "above: undefined",
    tests: RIGHTS,
    filter: "stands below it",
  },
  {
    name: "workflows: a rerun forgets what stood above the run",
    file: "src/acts/workflows/rerun-workflow.ts",
    from: "above: lineage, ",
    to: "",
    tests: RIGHTS,
    filter: "stands below it",
  },
  {
    name: "workflows: over HTTP any number of turns may wait",
    file: ROUTES,
    from: "await enterWaitingIn(tasks, tx, start);",
    to: "",
    tests: RIGHTS,
    filter: "is refused where too many turns wait",
  },
  {
    name: "workflows: an agent sees everybody's runs",
    file: ROUTES,
    from: 'return caller.kind === "agent" ? caller.name : null;',
    to: "return caller.kind === null ? caller : null;",
    ...forAgents,
  },
  {
    name: "workflows: an agent's run has the rights of the house",
    file: STARTING,
    from: "granted: agents.current.policy.grantOf(caller.name)",
    to: "granted: null",
    ...forAgents,
  },
  {
    name: "workflows: an agent that may not delegate starts one",
    file: STARTING,
    from: "if (isAgent) refuseUnlessMayDelegate(agents, caller.name);",
    to: "",
    ...forAgents,
  },
  {
    name: "workflows: an agent runs the operator's files",
    file: STARTING,
    from: 'if (isAgent && typeof given === "string")',
    to: 'if (isAgent && given === "")',
    ...forAgents,
  },
  {
    name: "workflows: an agent gives the word that a person should give",
    file: ROUTES,
    from: "allow: OPERATORS,\n      body: reviewVerdict,",
    to: "allow: STARTERS,\n      body: reviewVerdict,",
    ...forAgents,
  },
  {
    name: "workflows: one that is wrong is started all the same",
    file: STARTING,
    from: "const definition = soundWorkflow(read, await files.around(read));",
    to: "const definition = read.workflow ?? soundWorkflow(read, await files.around(read));",
    tests,
    filter: "answers 422",
  },
  {
    name: "workflows: an input that is missing is found out when half of it has run",
    file: ROUTES,
    from: "refuseMissingInput(start.definition, body.input);",
    to: "",
    tests,
    filter: "answers 422",
  },
  {
    name: "workflows: a name leads out of the folder",
    file: "src/settings/load-workflow.ts",
    from: "const file = NAME.test(name) ?",
    to: "const file = name !== '' ?",
    tests,
    filter: "answers 422",
  },
  {
    name: "workflows: whoever watches is not told of changes",
    file: "src/edges/api/workflow-live.ts",
    from: 'if (change) await send({ event: "change", data: change });',
    to: "",
    tests,
    filter: "whoever watches",
  },
  {
    name: "workflows: a run that failed is exit 0",
    file: "src/cli/workflow-run.ts",
    from: 'if (run.status === "completed") return 0;',
    to: 'if (run.status !== "cancelled") return 0;',
    tests,
    filter: "a failure is exit 1",
  },
  {
    name: "workflows: a retraction does not say what to run again",
    file: "src/acts/retract-entry.ts",
    from: "...(workflows ? { workflows } : {})",
    to: "",
    tests,
    filter: "a retracted entry",
  },
  {
    name: "workflows: the tree is drawn anew under the old one",
    file: "src/cli/workflow-progress.ts",
    from: "this.#height = lines.length;",
    to: "",
    tests: ["src/cli/workflow-progress.test.ts"],
  },
  {
    name: "workflows: branches that meet again are drawn as if they did not",
    file: "src/cli/workflow-layout.ts",
    from: "rank.set(step.id, neighbours.length === 0 ? 0 : Math.max(...neighbours) + 1);",
    to: "rank.set(step.id, 0);",
    tests: ["src/cli/workflow-layout.test.ts"],
  },
  {
    name: "whoever follows a run looks for ever where its daemon was",
    file: "src/cli/workflow-run.ts",
    from: "workflows.follow(id, stop, PATIENCE_MS)",
    to: "workflows.follow(id, stop)",
    tests: ["test/scenarios/workflows.test.ts"],
    filter: "whose daemon is gone",
  },
];

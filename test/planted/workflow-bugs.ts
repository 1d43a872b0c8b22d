import type { PlantedBug } from "./bugs.ts";

const RUN = ["test/contract/workflows-run.test.ts"];
const ANSWERS = ["test/contract/workflows-answers.test.ts"];
const RERUN = ["test/contract/workflows-rerun.test.ts"];
const CRASHES = ["test/contract/workflows-crashes.test.ts"];
const COST = ["test/contract/workflows-cost.test.ts"];
const SETTLE = "src/acts/workflows/settle-step.ts";
const ADVANCE = "src/acts/workflows/advance.ts";
const JUDGE = "src/acts/workflows/judge-step-answer.ts";
const CHANGE = "src/acts/workflows/change-workflow.ts";
const FILL = "src/acts/workflows/fill-writes.ts";
const REGISTRY = "src/records/pools/registry.ts";

/** Steps that run twice, too early or on what is no longer so; memory that others see. */
export const WORKFLOW_BUGS: readonly PlantedBug[] = [
  {
    name: "a run's pool is open to whoever its lists name",
    file: REGISTRY,
    from: 'if (isOfRun(pool.name) && (caller.kind === "agent" || caller.kind === "guest") && caller.pool !== pool.name) return false;',
    to: "",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "a step reads keys that it has not declared",
    file: "src/abilities/tools/context/context-tools.ts",
    from: "{ version, full, ...grantOf(context) }",
    to: "{ version, full }",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "a step writes keys that it has not declared",
    file: "src/abilities/tools/context/context-tools.ts",
    from: '{ external: labels.has("external"), ...grantOf(context) }',
    to: '{ external: labels.has("external") }',
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "a step names another pool and gets it",
    file: "src/abilities/tools/context/choose-pool.ts",
    from: "if (given !== undefined) {",
    to: "if (given !== undefined && named === undefined) {",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "what a step had read is not looked at again when it ends",
    file: JUDGE,
    from: 'if (stale && rule !== "warn")',
    to: 'if (stale && rule === "rebase")',
    tests: ANSWERS,
    filter: "SQLite",
  },
  {
    name: "a step is done again after a call that must not be made twice",
    file: JUDGE,
    from: " && !(await madeUnsafeCall(tx, run.id)))",
    to: ")",
    tests: ANSWERS,
    filter: "SQLite",
  },
  {
    name: "a step that is stale is done again for ever",
    file: JUDGE,
    from: "row.staleReruns < MAX_STALE_RERUNS &&",
    to: "row.staleReruns < 1_000_000 &&",
    tests: ANSWERS,
    filter: "SQLite",
  },
  {
    name: "after a rebase the step still rests on what it had read before",
    file: JUDGE,
    from: "version: current ?? 0, shown: false }));",
    to: "version: current ?? 0, shown: true }));",
    tests: ANSWERS,
    filter: "SQLite",
  },
  {
    name: "an answer that does not fit is corrected again and again",
    file: "src/acts/tasks/judgement.ts",
    from: "if (before >= CORRECTIONS)",
    to: "if (before > CORRECTIONS)",
    tests: ANSWERS,
    filter: "SQLite",
  },
  {
    name: "the answer overwrites what the step has written itself",
    file: JUDGE,
    from: "scope.writes.filter((key) => !written.has(key))",
    to: "scope.writes.filter((key) => key !== null || !written.has(key))",
    tests: ANSWERS,
    filter: "SQLite",
  },
  {
    name: "an answer made from external words is stored as trusted",
    file: FILL,
    from: '{ external: labels.has("external") }',
    to: '{ external: labels.has("secret") }',
    tests: ANSWERS,
    filter: "SQLite",
  },
  {
    name: "a key of another step is replaced by who never read it",
    file: "src/acts/workflows/own-versions.ts",
    from: "if (run !== null && own.has(run))",
    to: "if (run !== null)",
    tests: ANSWERS,
    filter: "SQLite",
  },
  {
    name: "a step that has ended is settled again",
    file: SETTLE,
    from: "if (!row || row.task !== task.id || isStepOver(row.state)) return",
    to: "if (!row || row.task !== task.id) return",
    tests: [...RUN, ...CRASHES],
    filter: "SQLite",
  },
  {
    name: "what rests on a failure is counted twice",
    file: SETTLE,
    from: 'if (state === "completed")\n',
    to: "if (state !== null)\n",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "a failed step is tried once more than it may be",
    file: SETTLE,
    from: "failures < (retry?.attempts ?? 1)",
    to: "failures <= (retry?.attempts ?? 1)",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "retries come at once",
    file: SETTLE,
    from: "const delayMs = isStale || !retry ? 0 : delayOf(retry, failures);",
    to: "const delayMs = isStale || retry ? 0 : delayOf({ backoff: 'none', delay: 0 }, failures);",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "another attempt has the time that the first one had left",
    file: "src/acts/workflows/start-step.ts",
    from: "if (step.timeout !== undefined) await setDeadline(tx, task.id, delayMs + step.timeout);",
    to: "",
    tests: COST,
    filter: "SQLite",
  },
  {
    name: "a paused run starts new steps",
    file: ADVANCE,
    from: "paused: going.standing.paused }",
    to: "paused: false }",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "a run that is resumed does again what was done",
    file: CHANGE,
    from: "again.filter((step) => !kept.has(step)),\n  );",
    to: "[...again, ...reused].filter((step) => !kept.has(step)),\n  );",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "a cancelled run leaves its turns running",
    file: CHANGE,
    from: "const below = await endTreeIn(parts, tx, { tasks: [id] }, { error, by, causedBy: null });",
    to: "const below: Awaited<ReturnType<typeof endTreeIn>> = { runs: [], workflows: [] };",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "another input with the same key is the first run",
    file: "src/acts/workflows/start-workflow.ts",
    from: "if (known.hash !== hash)",
    to: "if (known.hash === null)",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "a step goes beyond whoever started the workflow",
    file: "src/acts/workflows/step-grant.ts",
    from: "const most = granted === null ? policy.grantOf(agent)",
    to: "const most = agent !== null ? policy.grantOf(agent)",
    tests: RUN,
    filter: "SQLite",
  },
  {
    name: "going back takes over what is done again",
    file: "src/acts/workflows/rerun-workflow.ts",
    from: "pool, `run:${id}`, redone)",
    to: "pool, `run:${id}`, redone.slice(redone.length))",
    tests: RERUN,
    filter: "SQLite",
  },
  {
    name: "whoever wrote upon what is done again keeps it",
    file: "src/acts/workflows/rerun-workflow.ts",
    from: "else if (tainted === key && kept.has(run))",
    to: "else if (tainted === key && !kept.has(run))",
    tests: RERUN,
    filter: "SQLite",
  },
];

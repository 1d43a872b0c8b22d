import type { PlantedBug } from "./bugs.ts";

const VIEWERS = "src/records/tasks/task-viewers.ts";
const SEARCH = "src/records/tasks/search-tasks.ts";
const SEEN = "src/records/tasks/seen-tasks.ts";
const INDEX = "src/records/tasks/task-index.ts";
const RETENTION = "src/records/tasks/retention.ts";
const MARKED = "src/store/marked-documents.ts";
const ON_POSTGRES = "src/store/marked-on-postgres.ts";
const newest = { tests: ["test/contract/marked-documents.test.ts"], filter: "PostgreSQL" };
const ASK = "src/acts/tasks/ask-for-task.ts";
const onSqlite = { tests: ["test/contract/tasks.test.ts"], filter: "SQLite" };
const security = { tests: ["test/security/tasks.test.ts"] };
const scenario = { tests: ["test/scenarios/tasks.test.ts"], filter: "SQLite" };

/** Bugs in who sees which tasks, in how they are found, and in how long they are kept. */
export const TASK_BUGS: readonly PlantedBug[] = [
  {
    name: "whoever opened a task does not see what is below it",
    file: VIEWERS,
    from: "const inherited = above ? (JSON.parse(above.viewers) as string[]) : [];",
    to: "const inherited = above ? (JSON.parse(above.viewers) as string[]).slice(0, 0) : [];",
    ...onSqlite,
  },
  {
    name: "an agent that may look at one other sees everything",
    file: VIEWERS,
    from: 'return sees.includes("*") ? "all" : [...new Set([caller.name, ...sees])];',
    to: 'return sees.length > 0 ? "all" : [...new Set([caller.name, ...sees])];',
    ...onSqlite,
  },
  {
    name: "guests see what agents of their name see, whoever these look at",
    file: VIEWERS,
    from: 'if (caller.kind === "guest") return [caller.name];\n  if (caller.kind !== "agent") return [];',
    to: 'if (caller.kind === "reader") return [];',
    ...onSqlite,
  },
  {
    name: "a search looks through the tasks of all",
    file: SEARCH,
    from: '...(eyes === "all" ? [] : [eyes.map(MARKS.viewer)]),',
    to: "",
    ...security,
  },
  {
    name: "the beginning of an id finds the tasks of all",
    file: SEEN,
    from: "where v.viewer = ${viewer} and v.task_id >= ${from}",
    to: "where ${viewer} <> '' and v.task_id >= ${from}",
    ...security,
  },
  {
    name: "a name in the text of a task is as good as a mark",
    file: "src/store/search-marks.ts",
    from: "return FIRST + Buffer.from(mark)",
    to: "return Buffer.from(mark)",
    tests: ["test/contract/tasks.test.ts"],
    filter: "SQLite",
  },
  {
    name: "what came of a task is not found",
    file: INDEX,
    from: "text: parts.join(",
    to: "text: parts.slice(0, 1).join(",
    ...onSqlite,
  },
  {
    name: "what came of a task is never indexed",
    file: "src/records/tasks/task-rows.ts",
    from: "ended_at = now_ms(), indexed = 0 where",
    to: "ended_at = now_ms() where",
    ...onSqlite,
  },
  {
    name: "a task that goes on after its end is found as what it was",
    file: "src/records/tasks/task-rows.ts",
    from: "waiter = null, indexed = 0",
    to: "waiter = null",
    ...onSqlite,
  },
  {
    name: "whoever searches finds only what was indexed before",
    file: SEARCH,
    from: "await upToDate(store);",
    to: "",
    ...onSqlite,
  },
  {
    name: "the newest block of documents is not looked at",
    file: ON_POSTGRES,
    from: "{ length: youngest - oldest + 1 }",
    to: "{ length: youngest - oldest }",
    ...newest,
  },
  {
    name: "what few of the newest have is not looked for among the others",
    file: ON_POSTGRES,
    from: "if (found.length === wanted) return",
    to: "if (found.length > 0) return",
    ...newest,
  },
  {
    name: "the oldest are weighed, not the newest",
    file: MARKED,
    from: "order by rowid desc limit ${amongNewest}",
    to: "order by rowid limit ${amongNewest}",
    ...onSqlite,
  },
  {
    name: "a long beginning of a word is looked for by its first letters alone",
    file: MARKED,
    from: "newestOnSqlite(reads, loose, LOOKED_AT, beginnings)",
    to: "newestOnSqlite(reads, loose, LOOKED_AT, [])",
    ...onSqlite,
  },
  {
    name: "what is removed stays findable",
    file: RETENTION,
    from: "await this.#store.marked.remove(tx, id);",
    to: "",
    tests: ["test/contract/tasks.test.ts"],
    filter: "SQLite",
  },
  {
    name: "a task is removed while its parent still goes on",
    file: RETENTION,
    from: "and not exists (select 1 from tasks as p where p.id = t.parent_id and p.ended_at is null)",
    to: "",
    ...onSqlite,
  },
  {
    name: "a task that a turn still waits for is removed",
    file: RETENTION,
    from: "and not exists (select 1 from runs as r where r.id = t.parent_run and r.ended_at is null)",
    to: "",
    ...onSqlite,
  },
  {
    name: "every guest may give every agent tasks",
    file: ASK,
    from: "if (!isNamed(caller, current.agents.get(to)?.guests ?? []))",
    to: 'if (!isNamed(caller, ["*"]))',
    ...scenario,
  },
  {
    name: "an agent may give tasks to everybody",
    file: ASK,
    from: "if (!policy.delegatesOf(caller.name).includes(to))",
    to: "if (policy.delegatesOf(caller.name).includes(to) && to === caller.name)",
    ...scenario,
  },
  {
    name: "whoever may look at a task may end it",
    file: "src/records/tasks/tasks.ts",
    from: 'if ((caller.kind === "agent" || caller.kind === "guest") && commanding.includes(caller.name)) return whole;',
    to: 'if (caller.kind === "agent" || commanding.includes(caller.name)) return whole;',
    ...security,
  },
  {
    name: "runs of workflows stay when their tasks go",
    file: "src/daemon/chores.ts",
    from: "new Retention(store, keptFor, removeWorkflowRuns)",
    to: "new Retention(store, keptFor, async () => {})",
    tests: ["test/scenarios/workflows.test.ts"],
    filter: "goes with its task",
  },
  {
    name: "a run of a workflow goes that somebody goes on with",
    file: "src/records/workflows/workflow-run-rows.ts",
    from: " and status in ('completed', 'failed', 'cancelled') returning id",
    to: " returning id",
    tests: ["test/contract/workflows-kept.test.ts"],
    filter: "is kept whole",
  },
];

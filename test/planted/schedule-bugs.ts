import type { PlantedBug } from "./bugs.ts";

const SCHEDULES = "src/records/schedules/schedules.ts";
const PLAN = "src/records/schedules/plan-firing.ts";
const FIRE = "src/acts/schedules/fire-jobs.ts";
const MANAGE = "src/acts/schedules/manage-jobs.ts";
const TOOL = "src/abilities/tools/schedule/schedule-tool.ts";
const jobs = { tests: ["test/contract/schedules.test.ts"] };
const plan = { tests: ["src/records/schedules/plan-firing.test.ts"] };

export const SCHEDULE_BUGS: readonly PlantedBug[] = [
  {
    name: "a job that was fired by somebody else meanwhile is fired again",
    file: SCHEDULES,
    from: "where id = ${id} and version = ${version} and look_at <= now_ms() ${this.#store.dialect.skipLocked}`",
    to: "where id = ${id} and ${version} > 0 ${this.#store.dialect.skipLocked}`",
    ...jobs,
  },
  {
    name: "two who add a job at once both find room for it",
    file: SCHEDULES,
    from: "on conflict (agent) do update set agent = excluded.agent`;",
    to: "on conflict (agent) do nothing`;",
    ...jobs,
    filter: "PostgreSQL",
  },
  {
    name: "an agent may have any number of jobs",
    file: SCHEDULES,
    from: "if (jobs >= most) throw",
    to: "if (jobs < 0) throw",
    ...jobs,
  },
  {
    name: "an agent may let itself be started every second",
    file: SCHEDULES,
    from: "if (!seconds && isWithinMinute(cron))",
    to: "if (!seconds && cron === null)",
    ...jobs,
  },
  {
    name: "what is never due again is kept",
    file: SCHEDULES,
    from: "if (next === null)\n      throw new Failure(",
    to: "if (next === 0)\n      throw new Failure(",
    ...jobs,
  },
  {
    name: "a job is due by the clock of the node that made it",
    file: SCHEDULES,
    from: "const next = rule.next(now);",
    to: "const next = rule.next(Math.min(now, Date.now()));",
    ...jobs,
  },
  {
    name: "a job starts another task while its last one is open",
    file: FIRE,
    from: "if (openSince !== null || agentAway(agents.current, job.agent)) {",
    to: "if (agentAway(agents.current, job.agent)) {",
    ...jobs,
  },
  {
    name: "a job whose agent is away stands before those that can start",
    file: FIRE,
    from: "await schedules.postpone(job, lookAgainIn(now - Math.max(job.nextAt, openSince ?? 0)));",
    to: "await Promise.resolve();",
    ...jobs,
  },
  {
    name: "the longer a job is behind, the slower it catches up",
    file: FIRE,
    from: "lookAgainIn(now - Math.max(job.nextAt, openSince ?? 0))",
    to: "lookAgainIn(now - job.nextAt)",
    ...jobs,
  },
  {
    name: "a job has the rights its agent has later",
    file: FIRE,
    from: "...(job.granted ? { granted: job.granted } : {}),",
    to: "",
    ...jobs,
  },
  {
    name: "a job forgets what the turn had seen that made it",
    file: FIRE,
    from: "...(job.labels.length > 0 ? { labels: job.labels } : {}),",
    to: "",
    ...jobs,
  },
  {
    name: "an agent replaces what the operator made",
    file: MANAGE,
    from: "return schedules.putIn(tx, wanted, maker, (before) => mustOwn(caller, before));",
    to: "return schedules.putIn(tx, wanted, maker);",
    ...jobs,
  },
  {
    name: "an agent makes jobs for others",
    file: MANAGE,
    from: 'if (caller.kind === "agent" && wanted.agent !== caller.name)',
    to: 'if (caller.kind === "guest" && wanted.agent !== caller.name)',
    ...jobs,
  },
  {
    name: "after words from outside nobody is asked whether there shall be a job",
    file: TOOL,
    from: 'consequential: (_context, args) => (args as Arguments).action !== "list",',
    to: "consequential: false,",
    ...jobs,
  },
  {
    name: "under skip a time is made up for however late it is",
    file: PLAN,
    from: '(catchUp === "once" || now - last <= ON_TIME_MS)',
    to: '(catchUp === "once" || now >= last)',
    ...plan,
  },
  {
    name: "times that passed while the last task was open start one more",
    file: PLAN,
    from: "const starts = (busyUntil === null || last > busyUntil) &&",
    to: "const starts = (busyUntil === null || last > 0) &&",
    ...plan,
  },
  {
    name: "what was made up for is told as missed too",
    file: PLAN,
    from: "missed: count - (starts ? 1 : 0)",
    to: "missed: count",
    ...plan,
  },
];

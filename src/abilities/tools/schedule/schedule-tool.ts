import { z } from "zod";
import { personOf } from "../../../acts/schedules/fire-jobs.ts";
import { type MakingTurn, pauseJobIn, putJobIn, removeJobIn, resumeJobIn, viewOfJob } from "../../../acts/schedules/manage-jobs.ts";
import type { ScheduleParts } from "../../../acts/schedules/schedule-parts.ts";
import { CATCH_UP, ownSchedule } from "../../../contract/schedules.ts";
import { text } from "../../../contract/text.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { StoredJob } from "../../../records/schedules/job-rows.ts";
import type { Tx } from "../../../store/engine.ts";
import { type CallContext, defineTool, type Tool, type ToolOutcome } from "../tool.ts";

const parameters = z.strictObject({
  action: z.enum(["create", "list", "remove", "pause", "resume"]),
  name: text(64)
    .optional()
    .describe("Of the job, for every action but list: letters, digits, dots, _ and -. Creating one by a name that is there replaces it"),
  cron: text(200)
    .optional()
    .describe(
      'create: minute hour day month weekday, such as "0 9 * * 1-5"; @daily and the like; or one moment such as 2030-12-24T18:00:00',
    ),
  timezone: text(100).optional().describe("create: such as Europe/Zurich; UTC unless given"),
  goal: text(100_000)
    .optional()
    .describe("create: what you are to do then. You will know nothing but these words: name people, files and conversations in full"),
  catch_up: z
    .enum(CATCH_UP)
    .optional()
    .describe("create: what becomes of times that pass while you cannot run: skip, once (default: one run for all of them) or all"),
});
type Arguments = z.output<typeof parameters>;

/** Jobs of the agent that calls, and of nobody else. */
export function scheduleTool(parts: ScheduleParts): Tool {
  // Before anybody calls it: nothing is loaded inside a transaction.
  void parts.schedules.cron();
  return defineTool({
    name: "schedule",
    description:
      "Do something later, or again and again, by the clock. Each time you get a task of its own with the goal as its words, which does not know this conversation; what comes of it is in the list of tasks, and on a chat platform it is said in this conversation. At most once a minute.",
    parameters,
    effect: "keyed",
    consequential: (_context, args) => (args as Arguments).action !== "list",
    runIn: async (tx, args, context) => {
      if (args.action === "list") return { output: await listed(parts, tx, context) };
      if (args.action === "create") return created(parts, tx, args, context);
      return changed(parts, tx, args, context);
    },
  });
}

async function created(parts: ScheduleParts, tx: Tx, { action: _action, ...given }: Arguments, context: CallContext): Promise<ToolOutcome> {
  const wanted = ownSchedule.safeParse(given);
  if (!wanted.success) {
    const problems = wanted.error.issues.slice(0, 5).map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new Failure("tool.bad_arguments", `schedule, to create a job: ${problems.join("; ")}`);
  }
  const { run, grant, labels, caller, agent } = context;
  const turn: MakingTurn = {
    granted: grant,
    labels: [...labels],
    person: personOf(run.address),
    conversation: run.sessionKey,
    place: parts.tasks.delivers(run.address) ? run.address : null,
  };
  const { job, fresh } = await putJobIn(parts, tx, caller, { agent: agent.id, ...wanted.data }, turn);
  return { output: { [fresh ? "created" : "replaced"]: job.name, next: iso(job.nextAt), timezone: job.timezone } };
}

async function changed(parts: ScheduleParts, tx: Tx, { action, name }: Arguments, { agent, caller }: CallContext): Promise<ToolOutcome> {
  if (name === undefined) throw new Failure("tool.bad_arguments", `schedule: ${action} needs the name of the job`);
  const job = await parts.schedules.holdNamedIn(tx, agent.id, name);
  if (!job) throw new Failure("request.not_found", `you have no job ${name}`);
  switch (action) {
    case "pause":
      await pauseJobIn(parts, tx, caller, job);
      return { output: { paused: name } };
    case "resume":
      return { output: { resumed: name, next: iso((await resumeJobIn(parts, tx, caller, job)).nextAt) } };
    default:
      await removeJobIn(parts, tx, caller, job);
      return { output: { removed: name } };
  }
}

async function listed(parts: ScheduleParts, tx: Tx, { agent }: CallContext) {
  const jobs = await parts.schedules.listIn(tx, agent.id);
  return { jobs: await Promise.all(jobs.map((job) => shown(parts, tx, job))) };
}

async function shown(parts: ScheduleParts, tx: Tx, job: StoredJob) {
  const { name, cron, timezone, goal, owner, paused, nextAt, lastTask, missed, standing } = await viewOfJob(parts, tx, job);
  return {
    name,
    cron,
    timezone,
    goal,
    owner,
    paused,
    next: iso(nextAt),
    lastTask,
    missed,
    ...(standing ? { standing: standing.message } : {}),
  };
}

function iso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

import { ClientError } from "../client/client-error.ts";
import { SchedulesClient } from "../client/schedules.ts";
import type { CatchUp, Schedule } from "../contract/schedules.ts";
import { connectRunning } from "./connect.ts";
import { span, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, oneLine, print, say } from "./terminal.ts";

const GOAL_WIDTH = 50;

export async function listJobs({ agent, ...options }: GlobalOptions & { readonly agent?: string }): Promise<number> {
  const schedules = await (await clientFor(options)).all(agent);
  if (options.json) print(JSON.stringify({ schedules }));
  else if (schedules.length === 0) say("there are no jobs");
  else print(tableOf(schedules));
  return 0;
}

interface AddOptions extends GlobalOptions {
  readonly agent: string;
  readonly cron: string;
  readonly tz?: string;
  readonly catchUp?: CatchUp;
}

export async function addJob(name: string, goal: string, { agent, cron, tz, catchUp, ...options }: AddOptions): Promise<number> {
  const wanted = { agent, name, goal, cron, ...(tz ? { timezone: tz } : {}), ...(catchUp ? { catch_up: catchUp } : {}) };
  const job = await (await clientFor(options)).put(wanted);
  print(options.json ? JSON.stringify(job) : `${bold(job.name)} of ${job.agent} is due ${due(job)}`);
  return 0;
}

export async function changeJob(verb: "remove" | "pause" | "resume" | "run", wanted: string, options: GlobalOptions): Promise<number> {
  const client = await clientFor(options);
  const job = one(await client.all(), wanted);
  const name = `${bold(job.name)} of ${job.agent}`;
  if (verb === "run") {
    const task = await client.run(job.id);
    print(options.json ? JSON.stringify({ id: job.id, task }) : `${name} runs as task ${task}`);
  } else if (verb === "remove") {
    await client.remove(job.id);
    print(options.json ? JSON.stringify({ id: job.id, removed: true }) : `${name} is removed`);
  } else {
    const changed = await client[verb](job.id);
    print(options.json ? JSON.stringify(changed) : `${name} ${verb === "pause" ? "is paused" : `is due ${due(changed)}`}`);
  }
  return 0;
}

function one(jobs: readonly Schedule[], wanted: string): Schedule {
  const whole = jobs.filter(({ id, agent, name }) => id === wanted || name === wanted || `${agent}/${name}` === wanted);
  const found = whole.length > 0 ? whole : jobs.filter(({ id }) => id.startsWith(wanted));
  if (found.length === 1) return found[0] as Schedule;
  if (found.length === 0) throw new ClientError("request.not_found", `there is no job "${wanted}"`);
  const names = found.map(({ agent, name }) => `${agent}/${name}`).join(", ");
  throw new ClientError("request.malformed", `"${wanted}" is more than one job: ${names}`);
}

function tableOf(jobs: readonly Schedule[]): string {
  const rows = jobs.map((job) => [
    job.id.slice(0, 12),
    job.agent,
    job.name,
    harmless(job.cron) + (job.timezone === "UTC" ? "" : ` ${job.timezone}`),
    due(job),
    job.missed === 0 ? "" : `${job.missed} missed`,
    oneLine(job.goal, GOAL_WIDTH),
  ]);
  const notes = jobs.flatMap(({ name, agent, standing }) => (standing ? [`${agent}/${name}: ${harmless(standing.message)}`] : []));
  return [table([["id", "agent", "name", "times", "next", "", "goal"], ...rows]), ...notes].join("\n");
}

/** In the time of whoever reads it. */
function due({ paused, nextAt }: Schedule, now = Date.now()): string {
  if (paused) return "paused";
  if (nextAt === null) return "never again";
  const distance = span(Math.abs(nextAt - now));
  const day = new Date(nextAt - new Date(nextAt).getTimezoneOffset() * 60_000).toISOString();
  return `${day.slice(0, 10)} ${day.slice(11, 19)} (${nextAt < now ? `${distance} ago` : `in ${distance}`})`;
}

async function clientFor(options: GlobalOptions): Promise<SchedulesClient> {
  return new SchedulesClient(await connectRunning(options));
}

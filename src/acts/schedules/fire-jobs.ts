import { OWN_HOUSE } from "../../contract/wire.ts";
import type { Failure } from "../../kernel/failure.ts";
import type { StoredJob } from "../../records/schedules/job-rows.ts";
import { planFiring } from "../../records/schedules/plan-firing.ts";
import type { Tx } from "../../store/engine.ts";
import { openTaskIn } from "../tasks/open-task.ts";
import type { ScheduleParts } from "./schedule-parts.ts";
import { agentAway, lastTaskOf } from "./standing.ts";

const AT_ONCE = 100;
const SOONEST_MS = 1_000;
const LATEST_MS = 30_000;

/**
 * Starts what is due, each job in a transaction of its own; for upkeep, on every node, every second. Whatever else changes a job, or fires it, changes its
 * version: what was planned for another version is not done. Answers how many tasks were started.
 */
export async function fireDueJobs(parts: ScheduleParts): Promise<number> {
  const { schedules } = parts;
  let fired = 0;
  let failed: { readonly error: unknown } | undefined;
  for (const { job, now } of await schedules.due(AT_ONCE)) {
    try {
      if (await fireJob(parts, job, now)) fired++;
    } catch (error) {
      // One that cannot be started does not stand before the others.
      failed ??= { error };
      await schedules.postpone(job, LATEST_MS);
    }
  }
  if (failed) throw failed.error;
  return fired;
}

async function fireJob(parts: ScheduleParts, job: StoredJob, now: number): Promise<boolean> {
  const { schedules, tasks } = parts;
  const { store, agents } = tasks;
  if (job.nextAt === null) return false;
  const { openSince, endedAt } = await lastTaskOf(store.read, job);
  if (openSince !== null || agentAway(agents.current, job.agent)) {
    // What is in its way is not older than its last task, however old the times are that are caught up on.
    await schedules.postpone(job, lookAgainIn(now - Math.max(job.nextAt, openSince ?? 0)));
    return false;
  }
  const read = await schedules.cron();
  const due = { nextAt: job.nextAt, catchUp: job.catchUp };
  const firing = await planFiring(read(job.cron, job.timezone), due, now, endedAt);
  const started = await store.transact(
    "fire job",
    async (tx) => {
      if (!(await schedules.holdDueIn(tx, job))) return null;
      const opened = firing.time === null ? null : await openJobTaskIn(parts, tx, job, firing.time);
      if (opened && "refused" in opened) return opened;
      await schedules.firedIn(tx, job, firing, opened?.id ?? null);
      return opened;
    },
    "locked",
  );
  if (started && "refused" in started) throw started.refused;
  if (started) parts.reached("schedule.fired");
  return started !== null;
}

/** The longer it has been waiting, the longer it may take to be noticed. */
function lookAgainIn(waitedMs: number): number {
  return Math.min(LATEST_MS, Math.max(SOONEST_MS, Math.round(waitedMs / 4)));
}

/** `time` null: by somebody's word. */
export async function openJobTaskIn(
  { tasks }: ScheduleParts,
  tx: Tx,
  job: StoredJob,
  time: number | null,
): Promise<{ readonly id: string } | { readonly refused: Failure }> {
  const due = time === null ? "now, by hand" : `at ${new Date(time).toISOString()}`;
  return openTaskIn(tasks, tx, {
    kind: "schedule",
    agent: job.agent,
    from: job.owner,
    parent: null,
    goal: job.goal,
    input: `<SCHEDULED job ${job.name} | due ${due}>\n${job.goal}`,
    spec: { schedule: job.id, ...(job.place ? { tells: { place: job.place, job: job.name } } : {}) },
    ...(job.granted ? { granted: job.granted } : {}),
    ...(job.labels.length > 0 ? { labels: job.labels } : {}),
  });
}

/** Who speaks in the turn in which a job is made; null: nobody, or another agent. */
export function personOf({ platform, peer }: { readonly platform: string; readonly peer: string }): string | null {
  return platform === OWN_HOUSE ? null : `${platform}:${peer}`;
}

import { Failure } from "../../kernel/failure.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { refuses, standstillIn } from "../../records/agents/standstill.ts";
import type { StoredJob } from "../../records/schedules/job-rows.ts";
import { readTask } from "../../records/tasks/task-rows.ts";
import type { Reads } from "../../store/engine.ts";

/** Why a job of this agent starts nothing now. One that is only paused is given its task, which waits as messages do. */
export function agentAway(revision: Revision, agent: string): Failure | null {
  const standstill = standstillIn(revision, agent);
  if (standstill) return refuses(standstill) ? standstill.failure : null;
  return revision.agents.has(agent)
    ? null
    : new Failure("agent.unknown", `there is no agent "${agent}"`, { hint: "`guildhall agents list` shows those that there are." });
}

/** The job's newest task: since when it is open, or when it ended. One that was forgotten has ended before anything that is due now. */
export async function lastTaskOf(
  reads: Reads,
  { lastTask }: Pick<StoredJob, "lastTask">,
): Promise<{ openSince: number | null; endedAt: number | null }> {
  const task = lastTask === null ? undefined : await readTask(reads, lastTask);
  return { openSince: task?.endedAt === null ? task.createdAt : null, endedAt: task?.endedAt ?? null };
}

export function stillOpen({ name, lastTask }: Pick<StoredJob, "name" | "lastTask">): Failure {
  return new Failure("schedule.running", `the last task of ${name}, ${lastTask}, is still open`);
}

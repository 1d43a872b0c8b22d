import type { Schedule, WantedSchedule } from "../../contract/schedules.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import type { StoredJob } from "../../records/schedules/job-rows.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { openJobTaskIn } from "./fire-jobs.ts";
import type { ScheduleParts } from "./schedule-parts.ts";
import { agentAway, lastTaskOf, stillOpen } from "./standing.ts";

/** What is known of the turn in which an agent makes a job. */
export interface MakingTurn {
  readonly granted: Grant;
  readonly labels: readonly Label[];
  readonly person: string | null;
  readonly conversation: string | null;
  readonly place: Address | null;
}

/**
 * An agent makes jobs for itself, with the rights it has at that moment and no more, and not oftener than once a minute. The operator's have the
 * rights that the agent has when they are due.
 */
export async function putJobIn(
  parts: ScheduleParts,
  tx: Tx,
  caller: Caller,
  wanted: WantedSchedule,
  turn?: MakingTurn,
): Promise<{ readonly job: StoredJob; readonly fresh: boolean }> {
  const { schedules, tasks } = parts;
  const revision = tasks.agents.current;
  if (caller.kind === "agent" && wanted.agent !== caller.name)
    throw new Failure("request.forbidden", `${caller.name} makes jobs for itself alone, not for ${wanted.agent}`);
  const away = agentAway(revision, wanted.agent);
  if (away) throw away;
  const own = revision.agents.get(wanted.agent)?.grant ?? null;
  const maker = {
    owner: caller.name,
    granted: caller.kind === "operator" ? null : (turn?.granted ?? own),
    labels: turn?.labels ?? [],
    person: turn?.person ?? null,
    conversation: turn?.conversation ?? null,
    place: turn?.place ?? null,
    seconds: caller.kind === "operator",
  };
  return schedules.putIn(tx, wanted, maker, (before) => mustOwn(caller, before));
}

export async function pauseJobIn({ schedules }: ScheduleParts, tx: Tx, caller: Caller, job: StoredJob): Promise<StoredJob> {
  mustOwn(caller, job);
  return schedules.pauseIn(tx, job, caller.name);
}

export async function resumeJobIn({ schedules }: ScheduleParts, tx: Tx, caller: Caller, job: StoredJob): Promise<StoredJob> {
  mustOwn(caller, job);
  return schedules.resumeIn(tx, job, caller.name);
}

export async function removeJobIn({ schedules }: ScheduleParts, tx: Tx, caller: Caller, job: StoredJob): Promise<void> {
  mustOwn(caller, job);
  await schedules.removeIn(tx, job, caller.name);
}

/** Besides its times, also of a job that is paused. Never beside a task of it that is still open. */
export async function runJobIn(
  parts: ScheduleParts,
  tx: Tx,
  caller: Caller,
  job: StoredJob,
): Promise<{ readonly id: string } | { readonly refused: Failure }> {
  mustOwn(caller, job);
  const away = agentAway(parts.tasks.agents.current, job.agent);
  if (away) throw away;
  if ((await lastTaskOf(tx, job)).openSince !== null) throw stillOpen(job);
  const opened = await openJobTaskIn(parts, tx, job, null);
  if (!("refused" in opened)) await parts.schedules.ranIn(tx, job, caller.name, opened.id);
  return opened;
}

/** The job, held, if the caller may know of it. */
export async function holdVisibleJobIn({ schedules }: ScheduleParts, tx: Tx, caller: Caller, id: string): Promise<StoredJob> {
  const job = await schedules.holdIn(tx, id);
  if (!job || !maySee(caller, job)) throw new Failure("request.not_found", `there is no job ${id}`);
  return job;
}

export function maySee({ kind, name }: Caller, { agent }: Pick<StoredJob, "agent">): boolean {
  return kind === "operator" || kind === "reader" || (kind === "agent" && name === agent);
}

/** What the operator made may have more rights than its agent had at any time: only the operator changes it. */
function mustOwn(caller: Caller, { name, owner }: StoredJob): void {
  if (caller.kind === "operator" || (caller.kind === "agent" && owner === caller.name)) return;
  throw new Failure("request.forbidden", `${name} was made by ${owner}; only whoever made it, or the operator, may change or replace it`);
}

export async function viewOfJob({ tasks }: ScheduleParts, reads: Reads, job: StoredJob): Promise<Schedule> {
  const { granted: _granted, labels: _labels, lookAt: _lookAt, version: _version, place: _place, ...shown } = job;
  const inTheWay =
    agentAway(tasks.agents.current, job.agent) ?? ((await lastTaskOf(reads, job)).openSince !== null ? stillOpen(job) : null);
  return { ...shown, standing: inTheWay && { code: inTheWay.code, message: inTheWay.message } };
}

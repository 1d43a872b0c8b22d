import { MAX_JOBS_PER_AGENT, type WantedSchedule } from "../../contract/schedules.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Label } from "../../kernel/label.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { isWithinMinute, loadCron, type ReadCron } from "./cron-rule.ts";
import { JOB_COLUMNS, type JobRow, jobOf, type StoredJob } from "./job-rows.ts";
import type { Firing } from "./plan-firing.ts";

/** Who makes a job, and what it may do at most. */
export interface JobMaker {
  readonly owner: string;
  readonly granted: Grant | null;
  readonly labels: readonly Label[];
  readonly person: string | null;
  readonly conversation: string | null;
  readonly place: Address | null;
  /** It may be due more often than once a minute. */
  readonly seconds: boolean;
}

/** Of a list that may be long. */
export interface JobsPart {
  readonly after?: string | undefined;
  readonly limit?: number;
}

export interface ScheduleLimits {
  readonly jobsPerAgent: number;
}

/** For the pulse: whether a job is to be looked at. */
export const JOBS_DUE = sql`(select min(look_at) from schedules where look_at is not null) <= now_ms()`;

/** Jobs that start by the clock of the database, which all nodes share. */
export class Schedules {
  readonly #store: Store;
  readonly #newId: NewId;
  readonly #limits: ScheduleLimits;
  #loading: Promise<ReadCron> | undefined;

  constructor(store: Store, newId: NewId, limits: Partial<ScheduleLimits> = {}) {
    this.#store = store;
    this.#newId = newId;
    this.#limits = { jobsPerAgent: MAX_JOBS_PER_AGENT, ...limits };
  }

  /** To be awaited before a transaction that reads times: nothing is loaded inside of one. */
  cron(): Promise<ReadCron> {
    this.#loading ??= loadCron();
    return this.#loading;
  }

  /** The same name again replaces it, if nothing is against that, and it is due anew from now on. */
  async putIn(
    tx: Tx,
    wanted: WantedSchedule,
    maker: JobMaker,
    mayReplace: (job: StoredJob) => void = () => {},
  ): Promise<{ readonly job: StoredJob; readonly fresh: boolean }> {
    const { agent, name, cron, timezone, goal, catch_up: catchUp } = wanted;
    const next = await this.#firstTime(tx, wanted, maker.seconds);
    await this.#countedIn(tx, agent);
    const before = await this.holdNamedIn(tx, agent, name);
    if (before) mayReplace(before);
    else await this.#refuseTooMany(tx, agent);
    const granted = maker.granted && JSON.stringify(maker.granted);
    const labels = maker.labels.length === 0 ? null : JSON.stringify(maker.labels);
    const place = maker.place && JSON.stringify(maker.place);
    const row =
      (await tx.get<JobRow>`insert into schedules (id, agent, name, cron, timezone, goal, catch_up, owner, person, conversation, granted,
        labels, place, paused, next_at, look_at, version, missed, created_at)
      values (${this.#newId()}, ${agent}, ${name}, ${cron}, ${timezone}, ${goal}, ${catchUp}, ${maker.owner}, ${maker.person}, ${maker.conversation},
        ${granted}, ${labels}, ${place}, 0, ${next}, ${next}, 1, 0, now_ms())
      on conflict (agent, name) do update set cron = excluded.cron, timezone = excluded.timezone, goal = excluded.goal, catch_up = excluded.catch_up,
        owner = excluded.owner, person = excluded.person, conversation = excluded.conversation, granted = excluded.granted, labels = excluded.labels,
        place = excluded.place, paused = 0, next_at = excluded.next_at, look_at = excluded.look_at, version = schedules.version + 1
      returning ${JOB_COLUMNS}`) as JobRow;
    const job = jobOf(row);
    await this.#tell(tx, before ? "schedule.changed" : "schedule.created", maker.owner, job, { cron, timezone, catchUp, nextAt: next });
    return { job, fresh: before === undefined };
  }

  async pauseIn(tx: Tx, job: StoredJob, actor: string): Promise<StoredJob> {
    if (job.paused) return job;
    return this.#changeIn(tx, job, actor, true, null);
  }

  /** Due anew from now on: what passed meanwhile was not wanted. */
  async resumeIn(tx: Tx, job: StoredJob, actor: string): Promise<StoredJob> {
    if (!job.paused) return job;
    return this.#changeIn(tx, job, actor, false, await this.#firstTime(tx, job, true));
  }

  async removeIn(tx: Tx, job: StoredJob, actor: string): Promise<void> {
    await tx.run`delete from schedules where id = ${job.id}`;
    await this.#tell(tx, "schedule.removed", actor, job, {});
  }

  list(agent?: string, part: JobsPart = {}): Promise<StoredJob[]> {
    return this.listIn(this.#store.read, agent, part);
  }

  /** In the order they were made. */
  async listIn(reads: Reads, agent?: string, { after = "", limit = MAX_JOBS_PER_AGENT }: JobsPart = {}): Promise<StoredJob[]> {
    const of = agent === undefined ? sql`1 = 1` : sql`agent = ${agent}`;
    const rows = await reads.all<JobRow>`select ${JOB_COLUMNS} from schedules where ${of} and id > ${after} order by id limit ${limit}`;
    return rows.map(jobOf);
  }

  /** Held until the transaction ends. */
  async holdIn(tx: Tx, id: string): Promise<StoredJob | undefined> {
    const row = await tx.get<JobRow>`select ${JOB_COLUMNS} from schedules where id = ${id} ${this.#store.dialect.forUpdate}`;
    return row && jobOf(row);
  }

  async holdNamedIn(tx: Tx, agent: string, name: string): Promise<StoredJob | undefined> {
    const row =
      await tx.get<JobRow>`select ${JOB_COLUMNS} from schedules where agent = ${agent} and name = ${name} ${this.#store.dialect.forUpdate}`;
    return row && jobOf(row);
  }

  /** Those that somebody has to look at now, with the time it is. */
  async due(limit: number): Promise<{ readonly job: StoredJob; readonly now: number }[]> {
    const rows = await this.#store.read.all<JobRow & { readonly now: number }>`select ${JOB_COLUMNS}, now_ms() as now from schedules
      where look_at <= now_ms() order by look_at limit ${limit}`;
    return rows.map((row) => ({ job: jobOf(row), now: row.now }));
  }

  /** Held until the transaction ends, if it is still as it was when it was looked at; whom somebody else holds is in his hands. */
  async holdDueIn(tx: Tx, { id, version }: StoredJob): Promise<boolean> {
    const row =
      await tx.get`select id from schedules where id = ${id} and version = ${version} and look_at <= now_ms() ${this.#store.dialect.skipLocked}`;
    return row !== undefined;
  }

  /** Something is in its way: somebody looks again after this time. */
  async postpone(job: StoredJob, ms: number): Promise<void> {
    await this.#store.transact(
      "postpone job",
      (tx) =>
        tx.run`update schedules set look_at = now_ms() + cast(${ms} as bigint) where id = ${job.id} and version = ${job.version} and look_at is not null`,
      "locked",
    );
  }

  async firedIn(tx: Tx, job: StoredJob, { time, missed, busy, atLeast, nextAt }: Firing, task: string | null): Promise<void> {
    await tx.run`update schedules set next_at = ${nextAt}, look_at = ${nextAt}, missed = missed + ${missed}, version = version + 1,
      last_at = coalesce(cast(${time} as bigint), last_at), last_task = coalesce(${task}, last_task) where id = ${job.id}`;
    if (missed > 0)
      await this.#tell(tx, "schedule.missed", "guildhall", job, {
        count: missed,
        busy,
        ...(atLeast ? { atLeast } : {}),
        since: job.nextAt,
      });
    if (task !== null) await this.#tell(tx, "schedule.fired", "guildhall", job, { time, task, nextAt });
  }

  /** By somebody's word, besides its times. */
  async ranIn(tx: Tx, job: StoredJob, actor: string, task: string): Promise<void> {
    await tx.run`update schedules set last_at = now_ms(), last_task = ${task}, version = version + 1 where id = ${job.id}`;
    await this.#tell(tx, "schedule.fired", actor, job, { time: null, task, nextAt: job.nextAt });
  }

  async #changeIn(tx: Tx, job: StoredJob, actor: string, paused: boolean, next: number | null): Promise<StoredJob> {
    const row =
      (await tx.get<JobRow>`update schedules set paused = ${paused ? 1 : 0}, next_at = ${next}, look_at = ${next}, version = version + 1
      where id = ${job.id} returning ${JOB_COLUMNS}`) as JobRow;
    await this.#tell(tx, "schedule.changed", actor, job, { paused, nextAt: next });
    return jobOf(row);
  }

  /** By the clock of the database, in the transaction: nodes whose clocks differ agree. */
  async #firstTime(tx: Tx, { cron, timezone }: Pick<WantedSchedule, "cron" | "timezone">, seconds: boolean): Promise<number> {
    const read = await this.cron();
    const rule = read(cron, timezone);
    if (!seconds && isWithinMinute(cron))
      throw new Failure("schedule.too_often", `"${cron}" is due more often than once a minute; leave the seconds out, or write one number`);
    const { now } = (await tx.get<{ now: number }>`select now_ms() as now`) as { now: number };
    const next = rule.next(now);
    if (next === null)
      throw new Failure("schedule.bad_cron", `"${cron}" in ${timezone} is never due from now on`, {
        hint: "Name times that are still to come, and that there are.",
      });
    return next;
  }

  /** Whoever adds a job of this agent is alone with it until the transaction ends. */
  async #countedIn(tx: Tx, agent: string): Promise<void> {
    await tx.run`insert into schedule_locks (agent) values (${agent}) on conflict (agent) do update set agent = excluded.agent`;
  }

  async #refuseTooMany(tx: Tx, agent: string): Promise<void> {
    const { jobs } = (await tx.get<{ jobs: number }>`select count(*) as jobs from schedules where agent = ${agent}`) as { jobs: number };
    const most = this.#limits.jobsPerAgent;
    if (jobs >= most) throw new Failure("schedule.too_many", `${agent} has ${jobs} jobs, and may have ${most}`);
  }

  async #tell(
    tx: Tx,
    type: "schedule.created" | "schedule.changed" | "schedule.removed" | "schedule.fired" | "schedule.missed",
    actor: string,
    { id, agent, name }: StoredJob,
    data: object,
  ): Promise<number> {
    const [seq] = await this.#store.ledger.append(tx, { type, actor, subject: ["schedule", id], data: { agent, name, ...data } });
    return seq as number;
  }
}

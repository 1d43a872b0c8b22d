import type { CatchUp } from "../../contract/schedules.ts";
import { type Grant, readGrant } from "../../deciders/policy/grant.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { Label } from "../../kernel/label.ts";
import { code } from "../../store/sql.ts";

/**
 * Something that an agent does by the clock.
 *
 *   due(nextAt) → fired, with one task → due(next time)
 *   due, and something is in its way → looked at again later (lookAt); its times are counted when it goes on
 *   paused ⇄ due; over: it is never due again (nextAt null, and not paused)
 */
export interface StoredJob {
  readonly id: string;
  readonly agent: string;
  readonly name: string;
  readonly cron: string;
  readonly timezone: string;
  readonly goal: string;
  readonly catchUp: CatchUp;
  readonly owner: string;
  readonly person: string | null;
  readonly conversation: string | null;
  /** Where what comes of it is told; null: nowhere. */
  readonly place: Address | null;
  /** What it may call, at most; null: whatever its agent may when it is due. */
  readonly granted: Grant | null;
  readonly labels: readonly Label[];
  readonly paused: boolean;
  readonly nextAt: number | null;
  readonly lookAt: number | null;
  readonly lastAt: number | null;
  readonly lastTask: string | null;
  readonly missed: number;
  readonly version: number;
  readonly createdAt: number;
}

export interface JobRow {
  readonly id: string;
  readonly agent: string;
  readonly name: string;
  readonly cron: string;
  readonly timezone: string;
  readonly goal: string;
  readonly catch_up: CatchUp;
  readonly owner: string;
  readonly person: string | null;
  readonly conversation: string | null;
  readonly place: string | null;
  readonly granted: string | null;
  readonly labels: string | null;
  readonly paused: number;
  readonly next_at: number | null;
  readonly look_at: number | null;
  readonly last_at: number | null;
  readonly last_task: string | null;
  readonly missed: number;
  readonly version: number;
  readonly created_at: number;
}

export const JOB_COLUMNS = code(
  "id, agent, name, cron, timezone, goal, catch_up, owner, person, conversation, place, granted, labels, paused, next_at, look_at, last_at, last_task, missed, version, created_at",
);

export function jobOf(row: JobRow): StoredJob {
  return {
    id: row.id,
    agent: row.agent,
    name: row.name,
    cron: row.cron,
    timezone: row.timezone,
    goal: row.goal,
    catchUp: row.catch_up,
    owner: row.owner,
    person: row.person,
    conversation: row.conversation,
    place: row.place === null ? null : (JSON.parse(row.place) as Address),
    granted: row.granted === null ? null : readGrant(row.granted),
    labels: row.labels === null ? [] : (JSON.parse(row.labels) as Label[]),
    paused: row.paused === 1,
    nextAt: row.next_at,
    lookAt: row.look_at,
    lastAt: row.last_at,
    lastTask: row.last_task,
    missed: row.missed,
    version: row.version,
    createdAt: row.created_at,
  };
}

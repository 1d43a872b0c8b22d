import { type CatchUp, MAX_CATCH_UP } from "../../contract/schedules.ts";
import { TimeSlice } from "../../kernel/time-slice.ts";
import type { CronRule } from "./cron-rule.ts";

/** Under `skip` a time is missed when nobody has come to it for so long. */
export const ON_TIME_MS = 60_000;
/** Beyond so many, times that passed are told as "at least". Not less than those that `all` wants. */
const MAX_COUNTED = 10_000;

export interface DueJob {
  /** The first time that nothing was done about. */
  readonly nextAt: number;
  readonly catchUp: CatchUp;
}

export interface Firing {
  /** The time a task is started for; null: none is. */
  readonly time: number | null;
  readonly missed: number;
  /** Those of them that passed while the last task was still open. */
  readonly busy: number;
  /** There were more than are counted. */
  readonly atLeast: boolean;
  readonly nextAt: number | null;
}

/**
 * What to do about the times from `nextAt` to now. Not more than one task: the next one starts when this one has ended.
 *
 *   skip  the newest time, if it is less than a minute ago; the others are missed
 *   once  the newest time stands for all of them; the others are missed
 *   all   the oldest of the newest 100, and the next of them after it; older ones are missed
 *
 * Times that passed while the last task was open (until `busyUntil`) are missed, except under `all`, where they wait for their turn.
 */
export async function planFiring(
  rule: CronRule,
  { nextAt, catchUp }: DueJob,
  now: number,
  busyUntil: number | null,
  maxCounted = MAX_COUNTED,
): Promise<Firing> {
  const { count, busy, atLeast, newest, after } = await passed(rule, nextAt, now, busyUntil ?? Number.NEGATIVE_INFINITY, maxCounted);
  const last = newest.at(-1);
  if (last === undefined) return { time: null, missed: 0, busy: 0, atLeast: false, nextAt };
  if (catchUp === "all") {
    const [time, following] = newest as [number, number?];
    return { time, missed: count - newest.length, busy: 0, atLeast, nextAt: following ?? after };
  }
  const starts = (busyUntil === null || last > busyUntil) && (catchUp === "once" || now - last <= ON_TIME_MS);
  return { time: starts ? last : null, missed: count - (starts ? 1 : 0), busy, atLeast, nextAt: after };
}

interface Passed {
  readonly count: number;
  readonly busy: number;
  readonly atLeast: boolean;
  /** The newest 100 of them, oldest first. */
  readonly newest: readonly number[];
  readonly after: number | null;
}

async function passed(rule: CronRule, first: number, now: number, busyUntil: number, maxCounted: number): Promise<Passed> {
  const slice = new TimeSlice();
  const times: number[] = [];
  let busy = 0;
  let time: number | null = first;
  while (time !== null && time <= now) {
    if (times.length >= maxCounted)
      return { count: times.length, busy, atLeast: true, newest: rule.newest(MAX_CATCH_UP, now), after: rule.next(now) };
    times.push(time);
    if (time <= busyUntil) busy++;
    time = rule.next(time);
    if (slice.isOver) await slice.next();
  }
  return { count: times.length, busy, atLeast: false, newest: times.slice(-MAX_CATCH_UP), after: time };
}

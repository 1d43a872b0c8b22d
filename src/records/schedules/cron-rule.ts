import { Failure } from "../../kernel/failure.ts";

/** When something is due. Times are whole seconds, in milliseconds. */
export interface CronRule {
  /** The first time after this moment; null: never again. */
  next(after: number): number | null;
  /** The newest times up to this moment, at most so many, oldest first. */
  newest(count: number, until: number): number[];
}

export type ReadCron = (cron: string, timezone: string) => CronRule;

const EXAMPLE = 'such as "0 9 * * 1-5" (minute hour day month weekday), "@daily", or one moment such as "2030-12-24T18:00:00"';

/** Loaded when the first job is made or due: a start does not wait for it. */
export async function loadCron(): Promise<ReadCron> {
  const { Cron } = await import("croner");
  return (cron, timezone) => {
    refuseBadZone(timezone);
    try {
      const rule = new Cron(cron, { timezone });
      return {
        next: (after) => rule.nextRun(new Date(after))?.getTime() ?? null,
        // It counts in whole seconds, and leaves out the one it begins with.
        newest: (count, until) =>
          rule
            .previousRuns(count, new Date(Math.floor(until / 1_000) * 1_000 + 1_000))
            .map((time) => time.getTime())
            .toReversed(),
      };
    } catch (error) {
      throw new Failure("schedule.bad_cron", `"${cron}" says no times: ${reasonOf(error)}; write something ${EXAMPLE}`);
    }
  };
}

function refuseBadZone(timezone: string): void {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
  } catch {
    throw new Failure("schedule.bad_cron", `there is no time zone "${timezone}"; write one such as "Europe/Zurich" or "UTC"`, {
      hint: "Name a zone of the IANA list, or none: then it is UTC.",
    });
  }
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/^Cron\w+: /, "").replace(/\.$/, "");
}

const NICKNAME = /^@/;
const MOMENT = /^\d{4}-\d\d-\d\d/;

/** Whether it can be due twice within one minute: its seconds are more than one plain number. */
export function isWithinMinute(cron: string): boolean {
  const written = cron.trim();
  if (NICKNAME.test(written) || MOMENT.test(written)) return false;
  const fields = written.split(/\s+/);
  return fields.length > 5 && !/^\d{1,2}$/.test(fields[0] as string);
}

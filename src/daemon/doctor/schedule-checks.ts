import { agentAway } from "../../acts/schedules/standing.ts";
import { asFailure } from "../../kernel/failure.ts";
import { revisionOf } from "../../records/agents/revision.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { glanceInto, inspectStore } from "../../store/inspect-store.ts";
import { type Finding, ok, warning } from "./check.ts";

const ID = "schedules";
/** Whoever runs looks every second. */
const OVERDUE_MS = 60_000;
/** Jobs that stand still mostly do so for one reason. */
const TOLD = 10;

interface JobGlance {
  readonly agent: string;
  readonly name: string;
  readonly next_at: number;
  readonly look_at: number;
  readonly open_task: string | null;
  readonly now: number;
}

/** Jobs that are due and that nobody starts, and why. Nothing is said where there are none. */
export async function scheduleChecks(settings: Settings): Promise<Finding[]> {
  const { storeLocation } = settings;
  try {
    const { exists, schema, newest } = await inspectStore(storeLocation);
    if (!exists || schema < newest) return [];
    const due = await glanceInto(
      storeLocation,
      (reads) => reads.all<JobGlance>`
        select s.agent, s.name, s.next_at, s.look_at, t.id as open_task, now_ms() as now from schedules as s
        left join tasks as t on t.id = s.last_task and t.ended_at is null where s.next_at is not null order by s.next_at limit 1000`,
    );
    const [next] = due;
    if (!next) return [];
    const all = due.flatMap((job) => findingOf(settings, job));
    const found =
      all.length <= TOLD ? all : [...all.slice(0, TOLD), warning(ID, `and ${all.length - TOLD} more`, "guildhall schedule list")];
    return found.length > 0
      ? found
      : [ok(ID, `${due.length === 1 ? "1 job" : `${due.length} jobs`}; the next is due ${new Date(next.next_at).toISOString()}`)];
  } catch (error) {
    // What is wrong with the store is told by its own check.
    return [warning(ID, `cannot be looked at: ${asFailure(error).message}`, "See the store.")];
  }
}

function findingOf(settings: Settings, { agent, name, next_at: nextAt, look_at: lookAt, open_task: task, now }: JobGlance): Finding[] {
  const away = agentAway(revisionOf(settings, 0), agent);
  if (away)
    return [warning(ID, `${agent}/${name} stands still: ${away.message}`, `guildhall schedule remove ${agent}/${name}, or ${away.hint}`)];
  if (nextAt > now) return [];
  if (task !== null) return [warning(ID, `${agent}/${name} waits for its last task, ${task}`, `guildhall task show ${task}`)];
  if (now - lookAt < OVERDUE_MS) return [];
  return [warning(ID, `${agent}/${name} is due since ${new Date(nextAt).toISOString()}, and nobody starts it`, "guildhall start")];
}

import { z } from "zod";
import { agentId } from "./config.ts";
import { identifier, text } from "./text.ts";

/** What becomes of times that passed while nobody was there: none of them, one for all, or each (at most 100). */
export const CATCH_UP = ["skip", "once", "all"] as const;
export type CatchUp = (typeof CATCH_UP)[number];

/** How many of the times that passed get their task under `all`; and how many jobs an agent may have. */
export const MAX_CATCH_UP = 100;
export const MAX_JOBS_PER_AGENT = 100;

const shape = {
  /** Within its agent: the same name again replaces it. */
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "a job's name is 1 to 64 letters, digits, dots, _ and -"),
  /** Five fields, six with seconds, @daily and the like, or one moment: 2026-12-24T18:00:00. */
  cron: text(200),
  /** Such as Europe/Zurich; UTC unless given. */
  timezone: z.string().min(1).max(100).default("UTC"),
  goal: text(100_000),
  catch_up: z.enum(CATCH_UP).default("once"),
};

export const newSchedule = z.strictObject({ agent: agentId, ...shape });
export type NewSchedule = z.input<typeof newSchedule>;
export type WantedSchedule = z.output<typeof newSchedule>;
/** The same without its agent, for an agent that speaks of itself. */
export const ownSchedule = z.strictObject(shape);

export const schedule = z.object({
  id: z.string(),
  agent: z.string(),
  name: z.string(),
  cron: z.string(),
  timezone: z.string(),
  goal: z.string(),
  catchUp: z.enum(CATCH_UP),
  /** Who made it: an identity. */
  owner: z.string(),
  /** For whom the agent made it, and in which conversation, where that is known. */
  person: z.string().nullable(),
  conversation: z.string().nullable(),
  paused: z.boolean(),
  /** Null: paused, or never again. */
  nextAt: z.number().nullable(),
  /** The newest time that it was started for, and the task of it. */
  lastAt: z.number().nullable(),
  lastTask: z.string().nullable(),
  /** How many times passed without a task. */
  missed: z.number(),
  /** Why nothing is started when it is due; null: nothing is in the way. */
  standing: z.object({ code: z.string(), message: z.string() }).nullable(),
  createdAt: z.number(),
});
export type Schedule = z.output<typeof schedule>;
/** In the order they were made; `next`: `after` of the part that follows. */
export const scheduleList = z.object({ schedules: z.array(schedule), next: z.string().nullable() });
export const scheduleQuery = z.strictObject({
  agent: identifier.optional(),
  after: z.string().max(100).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});
export type ScheduleQuery = z.input<typeof scheduleQuery>;
export type ScheduleList = z.output<typeof scheduleList>;
export const removedSchedule = z.object({ id: z.string(), removed: z.literal(true) });
export const ranSchedule = z.object({ id: z.string(), task: z.string() });

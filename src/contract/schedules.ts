import { z } from "zod";
import { agentId } from "./config.ts";
import { identifier, text } from "./text.ts";

/** What becomes of times that passed while nobody was there: none of them, one for all, or each (at most 100). */
export const CATCH_UP = ["skip", "once", "all"] as const;
export type CatchUp = (typeof CATCH_UP)[number];

const shape = {
  /** Within its agent: the same name again replaces it. */
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "a job's name is 1 to 64 letters, digits, dots, _ and -"),
  /** Five fields, six with seconds, or @daily and the like. */
  cron: text(200),
  /** Such as Europe/Zurich; UTC unless given. */
  timezone: z.string().min(1).max(100).default("UTC"),
  goal: text(100_000),
  catch_up: z.enum(CATCH_UP).default("once"),
};

export const newSchedule = z.strictObject({ agent: agentId, ...shape });
export type NewSchedule = z.input<typeof newSchedule>;

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
  paused: z.boolean(),
  nextAt: z.number().nullable(),
  lastAt: z.number().nullable(),
  lastTask: z.string().nullable(),
  createdAt: z.number(),
});
export type Schedule = z.output<typeof schedule>;
export const scheduleList = z.object({ schedules: z.array(schedule) });
export const scheduleQuery = z.strictObject({ agent: identifier.optional() });

import { z } from "zod";
import { identifier } from "./text.ts";

/** What models were asked. `costUsd` leaves out calls whose price is not known: `unpriced` says how many. */
export const usage = z.object({
  calls: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  /** Of the input tokens, those that providers had kept. */
  cachedInputTokens: z.number(),
  costUsd: z.number(),
  unpriced: z.number(),
});
export type Usage = z.output<typeof usage>;

export const USAGE_BY = ["day", "model", "agent"] as const;

export const usageQuery = z.strictObject({
  agent: identifier.optional(),
  by: z.enum(USAGE_BY).default("day"),
  /** The last so many, today among them; by UTC. */
  days: z.coerce.number().int().min(1).max(3_660).default(30),
});
export type UsageQuery = z.output<typeof usageQuery>;
export type UsageFilter = z.input<typeof usageQuery>;

/** One of `day` (2026-01-31), `model` and `agent`, by what was asked for. */
const usageRow = usage.extend({ day: z.string().optional(), model: z.string().optional(), agent: z.string().optional() });
export type UsageRow = z.output<typeof usageRow>;

export const usageList = z.object({ by: z.enum(USAGE_BY), days: z.number(), rows: z.array(usageRow) });
export type UsageList = z.output<typeof usageList>;

import { z } from "zod";

/** `ask`: allowed once a person has approved it. */
export const VERDICTS = ["allow", "ask", "deny"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** One rule that was looked at: whether it speaks of this call, and what it says. */
export const policyLine = z.object({
  /** Whose rule: `agent coder`, `step test`, `the global rules`. */
  source: z.string(),
  /** As it is written: `deny: terminal`. */
  rule: z.string(),
  file: z.string().nullable(),
  line: z.number().nullable(),
  hit: z.boolean(),
  why: z.string(),
});
export type PolicyLine = z.output<typeof policyLine>;

/** Whether an agent may make a call, and why. */
export const canAnswer = z.object({
  agent: z.string(),
  tool: z.string(),
  verdict: z.enum(VERDICTS),
  because: z.string(),
  /** What to change so that it is allowed; null where nothing needs to be. */
  fix: z.string().nullable(),
  trace: z.array(policyLine),
});
export type CanAnswer = z.output<typeof canAnswer>;

export const canQuery = z.strictObject({
  tool: z.string().max(1_000),
  /** The arguments as JSON; without it, whether the tool may be called at all. */
  args: z.string().max(100_000).optional(),
});
export type CanQuery = z.input<typeof canQuery>;

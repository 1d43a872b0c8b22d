import { z } from "zod";
import { approval } from "./approvals.ts";
import { TASK_KINDS } from "./tasks.ts";
import { text } from "./text.ts";
import { usage } from "./usage.ts";
import { run } from "./wire.ts";

/** A whole id, or the beginning of one. */
export const RUN_ID = /^[0-9a-z]{6,20}$/;

const labels = z.array(z.enum(["external", "secret"]));
const tokens = z.object({ inputTokens: z.number(), outputTokens: z.number(), cachedInputTokens: z.number().optional() });

export const runCall = z.object({
  place: z.number(),
  id: z.string(),
  tool: z.string(),
  /** JSON, as the model wrote it. */
  args: z.string(),
  /** `brought`: of a tool that whoever asked answers himself. `none`: not begun yet. */
  state: z.enum(["asked", "intended", "waiting", "done", "refused", "unknown", "brought", "none"]),
  result: z.object({ text: z.string(), failed: z.boolean(), images: z.number() }).nullable(),
  labels,
  approval: z.string().nullable(),
  startedAt: z.number().nullable(),
  endedAt: z.number().nullable(),
});
export type RunCall = z.output<typeof runCall>;

/** What a turn has done, one thing after another. */
export const runStep = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("response"),
    step: z.number(),
    at: z.number(),
    labels,
    model: z.string(),
    text: z.string(),
    calls: z.array(runCall),
    usage: tokens.nullable(),
    /** In millionths of a US dollar; null: its price is not known. */
    cost: z.number().nullable(),
    cut: z.boolean(),
  }),
  z.object({
    kind: z.literal("steered"),
    step: z.number(),
    at: z.number(),
    labels,
    said: z.array(z.object({ from: z.string(), text: z.string(), run: z.string().nullable() })),
  }),
  z.object({ kind: z.literal("compacted"), step: z.number(), at: z.number(), labels, summary: z.string().nullable(), before: z.number() }),
]);
export type RunStep = z.output<typeof runStep>;

export const runSteps = z.object({
  run,
  /** What was asked, and by whom: `<platform>:<sender>`. */
  input: z.string(),
  from: z.string(),
  startedAt: z.number().nullable(),
  /** What the turn carries, from its beginning and from what it has done. */
  labels,
  steps: z.array(runStep),
  approvals: z.array(approval),
  /** The task it was a turn of; a workflow's step is named by both. */
  task: z
    .object({ id: z.string(), kind: z.enum(TASK_KINDS), workflow: z.string().nullable(), step: z.string().nullable() })
    .nullable()
    .optional(),
});
export type RunSteps = z.output<typeof runSteps>;

export const runQuery = z.strictObject({
  agent: text(64).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(100),
});
export type RunFilter = z.input<typeof runQuery>;

/** A run that is not over, and what it does now. */
export const openRun = z.object({
  id: z.string(),
  agent: z.string(),
  sessionKey: z.string(),
  status: z.enum(["queued", "running", "waiting"]),
  /** The beginning of what was asked. */
  input: z.string(),
  from: z.string(),
  createdAt: z.number(),
  startedAt: z.number().nullable(),
  /** What its model was asked for so far; null: nothing. */
  usage: usage.nullable(),
  /** The same with all tasks that go back to it, where it is the turn that answers a message. */
  usageBelow: usage.nullable().optional(),
  /** Tasks of its own that are not over. */
  tasks: z.number().optional(),
  /** Calls that run or wait for a person. */
  calls: z.array(z.object({ tool: z.string(), args: z.string(), state: z.enum(["asked", "intended", "waiting"]), since: z.number() })),
});
export type OpenRun = z.output<typeof openRun>;
export const openRuns = z.object({
  runs: z.array(openRun),
  /** How many there are in all. */
  total: z.number(),
});
export type OpenRuns = z.output<typeof openRuns>;

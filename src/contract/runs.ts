import { z } from "zod";

const usage = z.object({ inputTokens: z.number(), outputTokens: z.number(), cachedInputTokens: z.number().optional() });
const labels = z.array(z.enum(["external", "secret"]));

/** One call of a tool within an answer. */
const stepCall = z.object({
  place: z.number(),
  tool: z.string(),
  args: z.string(),
  effect: z.enum(["pure", "keyed", "unsafe"]),
  state: z.enum(["asked", "intended", "done", "refused", "unknown"]),
  /** What the model reads of it; null: nothing has come of it yet. */
  result: z.object({ text: z.string(), failed: z.boolean(), images: z.number() }).nullable(),
  labels,
  approval: z.string().nullable(),
  startedAt: z.number(),
  endedAt: z.number().nullable(),
});

/** An answer of the model and its calls, words that came in between, or a summary in place of what came before. */
const runStep = z.object({
  step: z.number(),
  at: z.number(),
  kind: z.enum(["response", "steered", "compacted"]),
  labels,
  /** What the model answered, or the summary. */
  text: z.string(),
  model: z.string().nullable(),
  usage: usage.nullable(),
  /** In millionths of a US dollar; null: not known. */
  cost: z.number().nullable(),
  calls: z.array(stepCall),
  said: z.array(z.object({ from: z.string(), text: z.string(), run: z.string().nullable() })),
});

/** What a turn has done so far, in its order. */
export const runSteps = z.object({
  run: z.string(),
  /** What the turn carries: `external`, words of somebody the house does not answer to; `secret`. */
  labels,
  steps: z.array(runStep),
});
export type RunSteps = z.output<typeof runSteps>;

/** `step`: before which answer; absent: the last one. */
export const runContextQuery = z.strictObject({ step: z.coerce.number().int().min(1).max(1_000_000).optional() });

const told = z.object({ text: z.string(), tokens: z.number() });

/** What the model was told before one of its answers. Tokens are counted as OpenAI's newer models count them; others differ somewhat. */
export const runContext = z.object({
  run: z.string(),
  step: z.number(),
  /** `answer`: what an answer was given to; `summary`: what was to be summarised; `next`: what it is asked next, nothing has been answered yet. */
  asked: z.enum(["answer", "summary", "next"]),
  model: z.string().nullable(),
  /** Whether this is what was sent, by its hash; null: nothing was recorded to compare it with. */
  exact: z.boolean().nullable(),
  labels,
  /** In their order. `system`: the same from turn to turn; `recalled`: before the conversation; `message`: right before the message. */
  parts: z.array(told.extend({ name: z.string(), place: z.enum(["system", "recalled", "message"]) })),
  tools: z.array(
    z.object({ name: z.string(), description: z.string(), parameters: z.record(z.string(), z.unknown()), tokens: z.number() }),
  ),
  messages: z.array(
    told.extend({
      role: z.enum(["user", "assistant", "tool"]),
      calls: z.array(z.object({ id: z.string(), tool: z.string(), args: z.string() })).optional(),
      results: z.array(z.object({ id: z.string(), tool: z.string(), text: z.string(), failed: z.boolean() })).optional(),
      images: z.number(),
    }),
  ),
  tokens: z.object({ system: z.number(), tools: z.number(), recalled: z.number(), messages: z.number(), total: z.number() }),
  /** The answers that can be asked for. */
  steps: z.array(z.number()),
});
export type RunContext = z.output<typeof runContext>;

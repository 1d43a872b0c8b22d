import { z } from "zod";

/** `step`: before which answer; absent: the last one. */
export const runContextQuery = z.strictObject({ step: z.coerce.number().int().min(1).max(1_000_000).optional() });

const told = z.object({ text: z.string(), tokens: z.number() });

/** What the model was told before one of its answers. Tokens are counted as OpenAI's newer models count them; others differ somewhat. */
export const runContext = z.object({
  run: z.string(),
  step: z.number(),
  /** `answer`: what was answered; `summary`: what was to be summarised; `next`: what is asked next, there is no answer yet. */
  asked: z.enum(["answer", "summary", "next"]),
  model: z.string().nullable(),
  /** Whether this is what was sent, by its hash; null: there is nothing to compare it with. */
  exact: z.boolean().nullable(),
  /** What the turn carries from its beginning on: `external`, words of somebody the house does not answer to; `secret`. */
  labels: z.array(z.enum(["external", "secret"])),
  /** In their order. `system`: the same from turn to turn; `recalled`: before the conversation; `message`: right before the message. */
  parts: z.array(told.extend({ name: z.string(), place: z.enum(["system", "recalled", "message"]) })),
  tools: z.array(
    z.object({ name: z.string(), description: z.string(), parameters: z.record(z.string(), z.unknown()), tokens: z.number() }),
  ),
  /** The whole conversation as it was told; what `parts` has of it with `message` is among it. */
  messages: z.array(
    told.extend({
      role: z.enum(["user", "assistant", "tool"]),
      calls: z.array(z.object({ id: z.string(), tool: z.string(), args: z.string() })).optional(),
      results: z.array(z.object({ id: z.string(), tool: z.string(), text: z.string(), failed: z.boolean() })).optional(),
      images: z.number(),
    }),
  ),
  tokens: z.object({ system: z.number(), tools: z.number(), recalled: z.number(), messages: z.number(), total: z.number() }),
  /** Those that can be asked for. */
  steps: z.array(z.number()),
});
export type RunContext = z.output<typeof runContext>;

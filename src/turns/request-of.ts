import type { ModelCallResult, ModelMessage, ModelRequest, ModelSettings, ToolOffer } from "../kernel/model.ts";
import type { CallRecord } from "../records/journal/calls.ts";
import type { Step } from "../records/journal/steps.ts";

/** What a turn begins with. Stays as it is while the turn goes on, so that providers find the same beginning every time. */
export interface Opening {
  readonly system: string | null;
  readonly recalled: string | null;
  readonly tools: readonly ToolOffer[];
  /** The conversation before, and what is to be answered. */
  readonly messages: readonly ModelMessage[];
  readonly settings?: ModelSettings | undefined;
  readonly cacheKey: string;
}

/** What the model is asked next: the opening, and everything the turn has done since. */
export function requestOf(opening: Opening, steps: readonly Step[]): ModelRequest {
  const summary = steps.findLast((step) => step.kind === "compacted");
  const told =
    summary?.kind === "compacted" ? steps.filter(({ step }) => step >= summary.compaction.before && step !== summary.step) : steps;
  const before: readonly ModelMessage[] =
    summary?.kind === "compacted" ? [{ role: "user", text: summary.compaction.summary }] : opening.messages;
  const { system, recalled, tools, settings, cacheKey } = opening;
  return {
    system,
    ...(tools.length === 0 ? {} : { tools }),
    ...(recalled === null ? {} : { recalled }),
    messages: [...before, ...told.flatMap(messagesOf)],
    ...(settings ? { settings } : {}),
    cacheKey,
  };
}

export function messagesOf(step: Step): ModelMessage[] {
  if (step.kind === "compacted") return [];
  if (step.kind === "steered") return step.said.map(({ from, text }) => ({ role: "user", text: `[while you work, from ${from}] ${text}` }));
  const { text, calls, opaque } = step.response;
  const said: ModelMessage = { role: "assistant", text, calls, ...(opaque === undefined ? {} : { opaque }) };
  return calls.length === 0 ? [said] : [said, { role: "tool", results: calls.map((call, place) => resultOf(call, step.calls, place)) }];
}

/** Models want a result for every call they made, in the order of the calls. */
function resultOf(call: { readonly id: string; readonly tool: string }, records: readonly CallRecord[], place: number): ModelCallResult {
  const result = records.find((record) => record.place === place)?.result;
  const { id, tool } = call;
  if (!result) return { id, tool, text: "not made", failed: true };
  const { text, failed, images } = result;
  return { id, tool, text, failed, ...(images ? { images } : {}) };
}

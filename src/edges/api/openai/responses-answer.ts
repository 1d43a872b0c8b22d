import type { ResponsesRequest } from "../../../contract/openai.ts";
import type { Run } from "../../../contract/wire.ts";
import type { ModelCall } from "../../../kernel/model.ts";

type Json = Record<string, unknown>;

/** A run as a response, in whatever state it is. */
export function responseOf(run: Run, sent: ResponsesRequest, status: string, output: readonly Json[], cut = false): Json {
  return {
    id: `resp_${run.id}`,
    object: "response",
    created_at: Math.floor(run.createdAt / 1000),
    completed_at: run.endedAt === null ? null : Math.floor(run.endedAt / 1000),
    status,
    background: false,
    error: null,
    incomplete_details: cut ? { reason: "max_output_tokens" } : null,
    instructions: sent.instructions ?? null,
    max_output_tokens: sent.max_output_tokens ?? null,
    metadata: sent.metadata ?? {},
    model: run.agent,
    output,
    parallel_tool_calls: true,
    previous_response_id: sent.previous_response_id ?? null,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: sent.temperature ?? null,
    text: { format: sent.text?.format ?? { type: "text" } },
    tool_choice: sent.tool_choice ?? "auto",
    tools: sent.tools ?? [],
    top_p: sent.top_p ?? null,
    truncation: "disabled",
    usage: run.usage && usageOf(run.usage),
  };
}

/** Ids of items are those of the run and their place: the same whenever it is told. */
export function messageItem(run: Run, place: number, status: "in_progress" | "completed" | "incomplete", text: string | null): Json {
  const content = text === null ? [] : [textPart(text)];
  return { id: `msg_${run.id}_${place}`, type: "message", status, role: "assistant", content };
}

export function callItem(run: Run, place: number, { id, tool, args }: ModelCall, begun = false): Json {
  return {
    id: `fc_${run.id}_${place}`,
    type: "function_call",
    status: begun ? "in_progress" : "completed",
    call_id: id,
    name: tool,
    arguments: begun ? "" : args,
  };
}

export function textPart(text: string): Json {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

/** What a finished run has answered, as items. */
export function outputOf(run: Run, cut: boolean): Json[] {
  const { text, calls = [] } = run.reply ?? { text: "" };
  const said = text === "" && calls.length > 0 ? [] : [messageItem(run, 0, cut ? "incomplete" : "completed", text)];
  return [...said, ...calls.map((call, index) => callItem(run, said.length + index, call))];
}

function usageOf({ inputTokens, outputTokens, cachedInputTokens = 0 }: NonNullable<Run["usage"]>): Json {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}

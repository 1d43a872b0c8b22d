import type { Run } from "../../../contract/wire.ts";
import { Failure } from "../../../kernel/failure.ts";
import { eventStream } from "../event-stream.ts";
import type { Send } from "../route.ts";
import { followRun } from "../run-live.ts";
import { askAgent, clientLeft, isCut, type OpenAiParts, type SentRequest } from "./ask-agent.ts";
import { ChatChunks, chatCompletion } from "./chat-answer.ts";
import { readChatRequest } from "./chat-request.ts";
import { failureOf, openAiError } from "./openai-error.ts";
import { Spoken } from "./spoken.ts";
import { waitForRun } from "./wait-for-run.ts";

/** `POST /v1/chat/completions`. */
export async function chatCompletions(parts: OpenAiParts, sent: SentRequest, left: AbortSignal, over: AbortSignal): Promise<Response> {
  const asked = readChatRequest(sent.body);
  const admitted = await askAgent(parts, sent, asked);
  const headers = { "x-guildhall-run": admitted.id, "cache-control": "no-store" };
  if (!asked.stream) {
    const run = await waitForRun(parts, sent, admitted.id, left, over);
    return Response.json(chatCompletion(run, await isCut(parts, run.id)), { headers });
  }
  const response = eventStream(
    over,
    parts.log,
    () => {},
    async (send, ended) => {
      await streamChat(parts, admitted, asked.includeUsage, send, ended);
      if (ended.aborted && !over.aborted) await clientLeft(parts, sent, admitted.id);
    },
  );
  response.headers.set("x-guildhall-run", admitted.id);
  return response;
}

async function streamChat(parts: OpenAiParts, admitted: Run, includeUsage: boolean, send: Send, ended: AbortSignal): Promise<void> {
  const chunks = new ChatChunks(admitted, includeUsage);
  const spoken = new Spoken();
  const say = async (words: ReturnType<Spoken["hear"]>): Promise<void> => {
    if (words) await send({ data: chunks.text(words.fresh ? `\n\n${words.text}` : words.text) });
  };
  await send({ data: chunks.begin() });
  const run = await followRun(parts.store, parts.live, admitted.id, (chunk) => say(spoken.hear(chunk)), ended);
  if (!run) return;
  if (run.status !== "completed") return send({ data: openAiError(failureOf(run.error)).body });
  await say(spoken.rest(run.reply?.text ?? ""));
  if (spoken.spoiled) return send({ data: openAiError(startedAgain(run)).body });
  for (const chunk of chunks.end(run, await isCut(parts, run.id))) await send({ data: chunk });
  await send({ text: "[DONE]" });
}

/** What was sent cannot be taken back. */
function startedAgain({ id }: Run): Failure {
  return new Failure("model.failed", `the answer broke off and was given anew; the whole answer is that of run ${id}`, {
    hint: "Send the request again with the same Idempotency-Key to read it, or see GET /api/runs/ID.",
  });
}

import { Failure } from "../../../kernel/failure.ts";
import type { ModelMessage } from "../../../kernel/model.ts";
import { readRun, readRunInput } from "../../../records/sessions/runs.ts";
import { eventStream } from "../event-stream.ts";
import { followRun } from "../run-live.ts";
import { askAgent, clientLeft, isCut, type OpenAiParts, PLATFORM, refuseForeign, type SentRequest } from "./ask-agent.ts";
import { outputOf, responseOf } from "./responses-answer.ts";
import { readResponsesRequest } from "./responses-request.ts";
import { ResponseEvents } from "./responses-stream.ts";
import { Spoken } from "./spoken.ts";
import { waitForRun } from "./wait-for-run.ts";

/** `POST /v1/responses`. */
export async function responses(parts: OpenAiParts, sent: SentRequest, left: AbortSignal, over: AbortSignal): Promise<Response> {
  const asked = await readResponsesRequest(sent.body, (id, agent) => saidBefore(parts, sent, id, agent));
  const admitted = await askAgent(parts, sent, asked);
  const headers = { "x-guildhall-run": admitted.id, "cache-control": "no-store" };
  if (!asked.stream) {
    const run = await waitForRun(parts, sent, admitted.id, left, over);
    const cut = await isCut(parts, run.id);
    return Response.json(responseOf(run, asked.sent, cut ? "incomplete" : "completed", outputOf(run, cut), cut), { headers });
  }
  const response = eventStream(
    over,
    parts.log,
    () => {},
    async (send, ended) => {
      const events = new ResponseEvents(admitted, asked.sent, send);
      const spoken = new Spoken();
      await events.begin();
      const run = await followRun(parts.store, parts.live, admitted.id, (chunk) => events.say(spoken.hear(chunk)), ended);
      if (run) {
        if (run.status === "completed") await events.say(spoken.rest(run.reply?.text ?? ""));
        await events.end(run, await isCut(parts, run.id), spoken.spoiled);
      } else if (!over.aborted) await clientLeft(parts, sent, admitted.id);
    },
  );
  response.headers.set("x-guildhall-run", admitted.id);
  return response;
}

/** A response is a run, and a run keeps what it was asked and what it has answered. */
async function saidBefore(
  parts: OpenAiParts,
  { caller }: SentRequest,
  responseId: string,
  agent: string,
): Promise<readonly ModelMessage[]> {
  refuseForeign(caller, agent);
  const runId = responseId.replace(/^resp_/, "");
  const [asked, run] = await Promise.all([readRunInput(parts.store.read, runId), readRun(parts.store.read, runId)]);
  const messages = asked?.request?.messages;
  if (!messages || asked.address.platform !== PLATFORM || run?.agent !== agent || run.status !== "completed" || !run.reply)
    throw new Failure("request.not_found", `there is no response "${responseId}" of the agent "${agent}" that can be gone on from`, {
      details: { param: "previous_response_id" },
    });
  const { text, calls } = run.reply;
  return [...messages, { role: "assistant", text, ...(calls ? { calls } : {}) }];
}

import type { Run } from "../../../contract/wire.ts";
import { Failure } from "../../../kernel/failure.ts";
import { followRun } from "../run-live.ts";
import { clientLeft, type OpenAiParts, type SentRequest } from "./ask-agent.ts";
import { failureOf } from "./openai-error.ts";

/** The finished run, or why there is no answer. `left`: the client has closed the connection; `over`: we must. */
export async function waitForRun(parts: OpenAiParts, sent: SentRequest, runId: string, left: AbortSignal, over: AbortSignal): Promise<Run> {
  const run = await followRun(parts.store, null, runId, async () => {}, AbortSignal.any([left, over]));
  if (!run) {
    if (left.aborted && !over.aborted) await clientLeft(parts, sent, runId);
    throw new Failure("daemon.stopping", `the answer was not waited for; it will be that of run ${runId}`);
  }
  if (run.status !== "completed") throw failureOf(run.error);
  return run;
}

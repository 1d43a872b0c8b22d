import type { StoredContext } from "../records/journal/contexts.ts";
import type { Step } from "../records/journal/steps.ts";
import { forgetAskedSummary, keepSummary } from "../records/journal/summaries.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";

/**
 * With the turn's end: the next one begins with the summary that this one has made. Not before, because a turn that is stopped leaves nothing in
 * the conversation, and a summary may tell of it.
 */
export async function keepSummaryOfTurn(
  tx: Tx,
  run: RunInput,
  steps: readonly Step[],
  context: Pick<StoredContext, "compact"> | undefined,
): Promise<void> {
  if (run.request?.messages) return;
  const made = steps.findLast((step) => step.kind === "compacted" && step.compaction.summary !== null);
  if (made) await keepSummary(tx, run.sessionKey, run.epoch, { run: run.id, step: made.step });
  else if (context?.compact) await forgetAskedSummary(tx, run.sessionKey, run.epoch);
}

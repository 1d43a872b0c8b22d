import { voidApprovalsOf } from "../records/access/approvals.ts";
import { failRun, mergedRuns, type RunError, type RunInput, readRunInput } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { closeDraftIn } from "./draft-reply.ts";
import { returnMailOfTurn } from "./turn-mail.ts";

export interface StoppedRun {
  readonly run: RunInput | undefined;
  /** With those whose messages it has taken in. */
  readonly ended: readonly string[];
  /** The event that says so. */
  readonly event: number;
}

/** Somebody has stopped this turn, and its work row is gone: its mail comes again, nobody is asked for it any more, and it has failed. */
export async function endStoppedRunIn(
  store: Store,
  tx: Tx,
  runId: string,
  error: RunError,
  by: string,
  causedBy: number | null,
): Promise<StoppedRun> {
  const run = await readRunInput(tx, runId);
  if (run) await returnMailOfTurn(store, tx, run, "stopped");
  await voidApprovalsOf(store, tx, runId, error.code);
  const ended = [runId, ...(await mergedRuns(tx, runId)).map((merged) => merged.id)];
  let event = 0;
  for (const one of ended) {
    await failRun(tx, one, error);
    const [failed] = await store.ledger.append(tx, { type: "turn.failed", actor: by, subject: ["run", one], causedBy, data: error });
    if (one === runId) event = failed as number;
  }
  await closeDraftIn(store, tx, runId, "(stopped)", event);
  return { run, ended, event };
}

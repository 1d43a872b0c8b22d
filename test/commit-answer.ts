import { beginTurn } from "../src/acts/begin-turn.ts";
import { commitTurn } from "../src/acts/commit-turn.ts";
import { TurnJournal } from "../src/acts/turn-journal.ts";
import { noCrashPoints } from "../src/kernel/crash-points.ts";
import type { NewId } from "../src/kernel/ids.ts";
import type { ModelUsage } from "../src/kernel/model.ts";
import { Approvals } from "../src/records/access/approvals.ts";
import type { RunInput } from "../src/records/sessions/runs.ts";
import type { Store } from "../src/store/store.ts";
import type { ClaimedWork } from "../src/store/work-queue.ts";
import { taskParts } from "./task-parts.ts";

export async function begin(store: Store, item: ClaimedWork, run: RunInput): Promise<number> {
  return (await beginTurn(store, item, run, "offline/demo", null)).cause;
}

/** Commits a turn that ends with its first answer. */
export async function commitAnswer(
  store: Store,
  newId: NewId,
  item: ClaimedWork,
  run: RunInput,
  answer: { readonly text: string; readonly usage: ModelUsage | null },
  causedBy: number,
): Promise<void> {
  const approvals = new Approvals(store, newId);
  const journal = new TurnJournal({ store, approvals, reached: noCrashPoints }, item, run, causedBy);
  const response = { ...answer, calls: [], model: "offline/demo", cost: null, requestHash: "" };
  const outcome = { text: answer.text, steps: [], last: { step: 1, response }, calls: [] };
  await commitTurn({ ...taskParts(store, newId), delivers: () => true, reached: noCrashPoints, journal }, item, run, outcome, causedBy);
}

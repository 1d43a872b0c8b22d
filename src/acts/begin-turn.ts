import { keepContext, type StoredContext } from "../records/journal/contexts.ts";
import { type RunInput, startRun } from "../records/sessions/runs.ts";
import type { Store } from "../store/store.ts";
import type { ClaimedWork } from "../store/work-queue.ts";
import type { TurnPayload } from "./work-kinds.ts";

/** Says that the turn runs, and keeps what its model is told. Answers the event's number, the cause of whatever the turn does. */
export async function beginTurn(
  store: Store,
  item: ClaimedWork,
  run: RunInput,
  model: string,
  context: StoredContext | null,
): Promise<number> {
  return store.transact(
    "begin turn",
    async (tx) => {
      await store.queue.guard(tx, item);
      await startRun(tx, run.id);
      if (context) await keepContext(tx, run.id, context);
      const [started] = await store.ledger.append(tx, {
        type: "turn.started",
        actor: run.agent,
        subject: ["run", run.id],
        causedBy: (item.payload as TurnPayload).causedBy,
        data: { attempt: item.attempt, model },
      });
      return started as number;
    },
    "locked",
  );
}

import type { Caller } from "../kernel/caller.ts";
import { keepContext, type StoredContext } from "../records/journal/contexts.ts";
import { type RunInput, startRun } from "../records/sessions/runs.ts";
import type { StoredTask } from "../records/tasks/task-rows.ts";
import { beginStep } from "../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { ClaimedWork } from "../store/work-queue.ts";
import { openMailIn, withMail } from "./open-mail.ts";
import { mailboxOf } from "./turn-mail.ts";
import type { TurnPayload } from "./work-kinds.ts";

/** What a turn is told that begins now. `reader`: the agent, who is told of its mail; null: it is not. */
export interface FreshContext {
  readonly context: StoredContext;
  readonly reader: Caller | null;
}

export interface Begun {
  /** The event's number, the cause of whatever the turn does. */
  readonly cause: number;
  /** As it is kept, with the mail that opened the turn; null: it was kept before. */
  readonly context: StoredContext | null;
}

/**
 * Says that the turn runs, opens what has come for its agent, and keeps what its model is told. Its answer is what lasts: a turn whose beginning has gone
 * with the power begins again.
 */
export async function beginTurn(
  store: Store,
  item: ClaimedWork,
  run: RunInput,
  model: string,
  fresh: FreshContext | null,
  task: Pick<StoredTask, "kind" | "workflow" | "step"> | null = null,
): Promise<Begun> {
  return store.transact(
    "begin turn",
    async (tx) => {
      await store.queue.guard(tx, item);
      await startRun(tx, run.id);
      const opened = fresh?.reader ? await openMailIn(mailboxOf(store), tx, fresh.reader) : null;
      const context = fresh && (opened ? withMail(fresh.context, opened) : fresh.context);
      if (context) await keepContext(tx, run.id, context);
      const [started] = await store.ledger.append(tx, {
        type: "turn.started",
        actor: run.agent,
        subject: ["run", run.id],
        causedBy: (item.payload as TurnPayload).causedBy,
        data: { attempt: item.attempt, model },
      });
      if (task?.kind === "step") await beginStepIn(store, tx, run, task, started as number);
      return { cause: started as number, context };
    },
    "locked",
    "with others",
  );
}

/** Taken up again by another attempt, it runs already. */
async function beginStepIn(
  store: Store,
  tx: Tx,
  run: RunInput,
  { workflow, step }: Pick<StoredTask, "workflow" | "step">,
  causedBy: number,
): Promise<void> {
  if (workflow === null || step === null || !(await beginStep(tx, workflow, step, run.id))) return;
  const data = { step, run: run.id, agent: run.agent };
  await store.ledger.append(tx, { type: "step.started", actor: run.agent, subject: ["workflow", workflow], causedBy, data });
}

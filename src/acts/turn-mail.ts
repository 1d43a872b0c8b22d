import type { Caller } from "../kernel/caller.ts";
import { Failure } from "../kernel/failure.ts";
import { readContext, type StoredContext } from "../records/journal/contexts.ts";
import { readNotedSteps, type Step } from "../records/journal/steps.ts";
import { Mailbox } from "../records/mailbox/mailbox.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { ackOpenedMailIn, returnOpenedMailIn } from "./open-mail.ts";
import type { MailToAck } from "./write-and-ack.ts";

/** The agent in this turn, as other records know it. */
export function agentIn(
  { id, agent }: Pick<RunInput, "id" | "agent">,
  roles: readonly string[] = [],
  step: string | null = null,
  pool?: string,
): Caller {
  return { kind: "agent", name: agent, roles, run: id, step, call: null, pool };
}

/** For mail that is there already. */
export function mailboxOf(store: Store): Mailbox {
  return new Mailbox(store, () => {
    throw new Failure("internal.bug", "no mail is sent from here");
  });
}

/** In the turn's commit: everything it was told of, at its beginning and in between. */
export async function ackMailOfTurn(
  store: Store,
  tx: Tx,
  run: RunInput,
  context: StoredContext | undefined,
  steps: readonly Step[],
): Promise<void> {
  const mail = mailIn(context, steps);
  if (mail.length > 0) await ackOpenedMailIn(mailboxOf(store), tx, agentIn(run), mail);
}

/** Where the turn ends without an answer: it comes again. */
export async function returnMailOfTurn(
  store: Store,
  tx: Tx,
  run: Pick<RunInput, "id" | "agent">,
  because: "failed" | "stopped",
): Promise<void> {
  const context = await readContext(tx, run.id);
  if (!context) return;
  const mail = mailIn(context, await readNotedSteps(tx, run.id));
  if (mail.length > 0) await returnOpenedMailIn(mailboxOf(store), tx, agentIn(run), mail, because);
}

function mailIn(context: StoredContext | undefined, steps: readonly Step[]): MailToAck[] {
  const between = steps.flatMap((step) => (step.kind === "steered" ? step.said.flatMap(({ mail = [] }) => mail) : []));
  return [...(context?.mail ?? []), ...between];
}

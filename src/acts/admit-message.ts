import type { Admission } from "../contract/wire.ts";
import type { Address } from "../deciders/routing/address.ts";
import type { RouteDecision } from "../deciders/routing/route.ts";
import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { NewId } from "../kernel/ids.ts";
import { enterInbox } from "../records/sessions/inbox.ts";
import { addRun, readRun } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { TURN_WORK, type TurnPayload } from "./work-kinds.ts";

export interface MessageToAdmit {
  readonly externalId: string;
  readonly address: Address;
  readonly text: string;
  readonly decision: RouteDecision;
  /** Null exactly when the decision refuses. */
  readonly sessionKey: string | null;
}

/**
 * Stores a message, the decision about it and the work it causes, all or nothing. The same message again changes nothing and
 * answers with the first one's run.
 */
export async function admitMessage(store: Store, newId: NewId, reached: ReachedPoint, message: MessageToAdmit): Promise<Admission> {
  const runId = newId();
  const admission = await store.transact(
    "admit message",
    async (tx): Promise<Admission> => {
      const { platform, account } = message.address;
      const owner = await enterInbox(tx, { platform, account, externalId: message.externalId }, runId);
      if (owner !== runId) return firstAdmission(tx, owner);
      await admit(store, tx, runId, message);
      return { runId, agent: message.decision.agent, sessionKey: message.sessionKey, duplicate: false };
    },
    "locked",
  );
  if (!admission.duplicate) reached("message.admitted");
  return admission;
}

async function firstAdmission(tx: Tx, runId: string): Promise<Admission> {
  const run = await readRun(tx, runId);
  return { runId, agent: run?.agent ?? null, sessionKey: run?.sessionKey ?? null, duplicate: true };
}

async function admit(store: Store, tx: Tx, runId: string, message: MessageToAdmit): Promise<void> {
  const { address, decision, sessionKey } = message;
  const refusal = decision.agent === null ? { code: "route.unrouted", message: decision.because } : null;
  await addRun(tx, { id: runId, agent: decision.agent, sessionKey, address, input: message.text, decision, refusal });
  const subject = ["run", runId];
  const [admitted] = await store.ledger.append(tx, {
    type: "message.admitted",
    actor: `${address.platform}:${address.peer}`,
    subject,
    data: { id: message.externalId, address },
  });
  const [decided] = await store.ledger.append(tx, {
    type: "route.decided",
    actor: "guildhall",
    subject,
    causedBy: admitted as number,
    data: { ...decision, sessionKey },
  });
  if (sessionKey === null) {
    await store.ledger.append(tx, { type: "message.refused", actor: "guildhall", subject, causedBy: decided as number, data: refusal });
    return;
  }
  const payload: TurnPayload = { runId, causedBy: decided as number };
  await store.queue.enqueue(tx, { kind: TURN_WORK, payload, lane: ["session", sessionKey] });
}

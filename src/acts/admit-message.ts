import type { Admission } from "../contract/wire.ts";
import type { Address } from "../deciders/routing/address.ts";
import type { RouteDecision } from "../deciders/routing/route.ts";
import { isFailure } from "../kernel/failure.ts";
import { enterInbox } from "../records/sessions/inbox.ts";
import type { Origin } from "../records/sessions/origin.ts";
import { addRun, type RunError, type RunRequest, readRun } from "../records/sessions/runs.ts";
import { enterSession } from "../records/sessions/session-state.ts";
import { refuseLongName } from "../records/sessions/transcript.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { ClaimedWork, Taker } from "../store/work-queue.ts";
import { type HandoverTargets, type Placed, placeMessage } from "./place-message.ts";
import { sessionLane, TURN_WORK, type TurnPayload } from "./work-kinds.ts";

export interface MessageToAdmit {
  readonly externalId: string;
  readonly address: Address;
  readonly text: string;
  /** What the rules say, or what the sender has named. */
  readonly decision: RouteDecision;
  /** Null exactly when the decision refuses. */
  readonly sessionKey: string | null;
  /** Absent or null: no handover counts. */
  readonly targets?: HandoverTargets | null;
  readonly request?: RunRequest;
  /** Why this agent takes no messages; null: it does. */
  refusalBy?(agent: string): RunError | null;
  /** Throws when too much waits already; asked of messages that are new. */
  refuseWhenFull?(tx: Tx, agent: string, sessionKey: string): Promise<void>;
  /** Nobody is there who could send it again: where too much waits already, it is kept as refused. */
  readonly keepsRefused?: boolean;
  readonly origin?: Origin;
  /** The agent's share where agents wait for each other; absent: one. */
  weightOf?(agent: string): number;
  /** This node has a place free for a turn of this agent. */
  readonly taker?: (Taker & { readonly tenant: string }) | null;
}

/** `taken`: the turn's work, where the node that admits it begins it at once. */
export interface Admitted {
  readonly admission: Admission;
  readonly taken: ClaimedWork | null;
}

/**
 * Stores a message, the decision about it and the work it causes, all or nothing. The same message again changes nothing and
 * answers with the first one's run.
 */
export async function admitMessageIn(store: Store, tx: Tx, runId: string, message: MessageToAdmit): Promise<Admitted> {
  const { platform, account } = message.address;
  const owner = await enterInbox(tx, { platform, account, externalId: message.externalId }, runId);
  if (owner !== runId) return { admission: await firstAdmission(tx, owner), taken: null };
  const wanted = await placeMessage(tx, message, message.targets ?? null);
  const refusal = refusalOf(message, wanted) ?? (await fullness(tx, message, wanted));
  const placed = refusal ? { ...wanted, sessionKey: null } : wanted;
  const taken = await admit(store, tx, runId, message, placed, refusal);
  return { admission: { runId, agent: placed.decision.agent, sessionKey: placed.sessionKey, duplicate: false }, taken };
}

async function fullness(tx: Tx, message: MessageToAdmit, { decision, sessionKey }: Placed): Promise<RunError | null> {
  try {
    await message.refuseWhenFull?.(tx, decision.agent as string, sessionKey as string);
    return null;
  } catch (error) {
    if (!message.keepsRefused || !isFailure(error, "request.busy")) throw error;
    return { code: error.code, message: error.message };
  }
}

/** How a message that has come before was taken then. */
export async function firstAdmission(tx: Tx, runId: string): Promise<Admission> {
  const run = await readRun(tx, runId);
  return { runId, agent: run?.agent ?? null, sessionKey: run?.sessionKey ?? null, duplicate: true };
}

function refusalOf(message: MessageToAdmit, { decision }: Placed): RunError | null {
  if (decision.agent === null) return { code: "route.unrouted", message: decision.because };
  return message.refusalBy?.(decision.agent) ?? null;
}

async function admit(
  store: Store,
  tx: Tx,
  runId: string,
  message: MessageToAdmit,
  placed: Placed,
  refusal: RunError | null,
): Promise<ClaimedWork | null> {
  const { address } = message;
  const { decision, sessionKey } = placed;
  const { request } = message;
  const epoch = await admittedTo(tx, placed, message);
  const run = { id: runId, agent: decision.agent, sessionKey, address, input: message.text, decision, refusal, epoch };
  await addRun(tx, { ...run, ...(request ? { request } : {}), ...(message.origin ? { origin: message.origin } : {}) });
  const decided = await tellAdmission(store, tx, runId, message, placed);
  if (sessionKey === null) {
    const subject = ["run", runId];
    await store.ledger.append(tx, { type: "message.refused", actor: "guildhall", subject, causedBy: decided, data: refusal });
    return null;
  }
  const payload: TurnPayload = { runId, causedBy: decided };
  const name = decision.agent as string;
  const tenant = { name, weight: message.weightOf?.(name) ?? 1 };
  const work = { kind: TURN_WORK, payload, lane: sessionLane(sessionKey), tenant };
  if (message.taker?.tenant === name) return store.queue.enqueueTaken(tx, work, message.taker);
  await store.queue.enqueue(tx, work);
  return null;
}

/** The epoch of its session that a message belongs to. */
async function admittedTo(tx: Tx, { decision, sessionKey }: Placed, { text, request }: MessageToAdmit): Promise<number> {
  if (decision.agent === null || sessionKey === null) return 1;
  refuseLongName(decision.agent, sessionKey);
  // It brings its conversation along, and leaves none behind.
  if (request?.messages) return 1;
  return enterSession(tx, sessionKey, decision.agent, text);
}

/** Answers the number of the event of the decision. */
export async function tellAdmission(
  store: Store,
  tx: Tx,
  runId: string,
  { externalId, address }: Pick<MessageToAdmit, "externalId" | "address">,
  { decision, sessionKey }: Placed,
): Promise<number> {
  const subject = ["run", runId];
  // The trace is kept once, with the run.
  const { agent, tier, binding, because, revision } = decision;
  const [admitted] = await store.ledger.append(tx, {
    type: "message.admitted",
    actor: `${address.platform}:${address.peer}`,
    subject,
    data: { id: externalId, address },
  });
  const [decided] = await store.ledger.append(tx, {
    type: "route.decided",
    actor: "guildhall",
    subject,
    causedBy: admitted as number,
    data: { agent, tier, binding, because, sessionKey, ...(revision === undefined ? {} : { revision }) },
  });
  return decided as number;
}

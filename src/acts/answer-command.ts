import type { Admission } from "../contract/wire.ts";
import { enterInbox } from "../records/sessions/inbox.ts";
import { addAnsweredRun, type RunError } from "../records/sessions/runs.ts";
import { readSessionState } from "../records/sessions/session-state.ts";
import { refuseLongName } from "../records/sessions/transcript.ts";
import type { Tx } from "../store/engine.ts";
import { firstAdmission, type MessageToAdmit, tellAdmission } from "./admit-message.ts";
import { type Placed, placeMessage } from "./place-message.ts";
import { type ReplyParts, sendReplyIn } from "./send-reply.ts";

export interface CommandAnswer {
  readonly text: string;
  /** What was wrong, for programs. The effect has changed nothing then. */
  readonly error?: RunError;
  /** Runs that it has ended. */
  readonly stopped?: readonly string[];
}

export interface CommandMessage extends MessageToAdmit {
  /** For the ledger: which command it was, and with what. */
  readonly command: string;
  readonly args: readonly string[];
  /** Everything it does and says, inside the transaction. */
  effect(tx: Tx, placed: Placed): Promise<CommandAnswer>;
}

/**
 * A message that is a command: it is stored, takes effect and is answered at once, all or nothing; the same message again changes
 * nothing. No model sees it, and it is no part of what was said. Its run is kept under the agent that has the conversation afterwards.
 * Answers also the runs that were ended, for whoever can make them end sooner.
 */
export async function answerCommandIn(
  parts: ReplyParts,
  tx: Tx,
  runId: string,
  message: CommandMessage,
): Promise<{ readonly admission: Admission; readonly stopped: readonly string[] }> {
  const { platform, account } = message.address;
  const owner = await enterInbox(tx, { platform, account, externalId: message.externalId }, runId);
  if (owner !== runId) return { admission: await firstAdmission(tx, owner), stopped: [] };
  const before = await placeMessage(tx, message, message.targets ?? null);
  for (const { decision, sessionKey } of [message, before]) refuseLongName(decision.agent as string, sessionKey as string);
  const answer = await message.effect(tx, before);
  const placed = await placeMessage(tx, message, message.targets ?? null);
  const { agent, sessionKey } = await keep(parts, tx, runId, message, placed, answer);
  return { admission: { runId, agent, sessionKey, duplicate: false }, stopped: answer.stopped ?? [] };
}

async function keep(
  parts: ReplyParts,
  tx: Tx,
  runId: string,
  message: CommandMessage,
  placed: Placed,
  { text, error }: CommandAnswer,
): Promise<{ readonly agent: string; readonly sessionKey: string }> {
  const { store } = parts;
  const { address } = message;
  const [agent, sessionKey] = [placed.decision.agent as string, placed.sessionKey as string];
  refuseLongName(agent, sessionKey);
  const { epoch } = await readSessionState(tx, sessionKey);
  const { decision } = placed;
  await addAnsweredRun(tx, {
    id: runId,
    agent,
    sessionKey,
    address,
    input: message.text,
    decision,
    epoch,
    reply: text,
    error: error ?? null,
  });
  const decided = await tellAdmission(store, tx, runId, message, placed);
  const [ran] = await store.ledger.append(tx, {
    type: "command.ran",
    actor: `${address.platform}:${address.peer}`,
    subject: ["run", runId],
    causedBy: decided,
    data: { command: message.command, args: message.args, error: error?.code ?? null },
  });
  await sendReplyIn(parts, tx, { runId, address, text, answers: message.origin?.messageId ?? null }, ran as number);
  return { agent, sessionKey };
}

import type { Address } from "../deciders/routing/address.ts";
import type { Redact } from "../kernel/redact.ts";
import { inFence, shown } from "../kernel/shown.ts";
import { shownCall } from "../records/access/approvals.ts";
import { ownerChats } from "../records/channels/owner-chats.ts";
import { type RunInput, readRunInput } from "../records/sessions/runs.ts";
import { readTask } from "../records/tasks/task-rows.ts";
import type { Reads, Tx } from "../store/engine.ts";
import { type ReplyParts, sendReplyIn } from "./send-reply.ts";

export interface AskParts extends ReplyParts {
  /** Who may answer, as <platform>:<sender id>. */
  readonly owners: readonly string[];
  readonly redact: Redact;
}

/** A call that was not asked about before. */
export interface FreshQuestion {
  readonly approval: string;
  readonly tool: string;
  readonly args: unknown;
}

/** Where the message was written that the turn goes back to. */
interface Place {
  readonly address: Address;
  readonly messageId: string | null;
}

/** As much of a call as fits a message on every platform. */
const SHOWN_CHARACTERS = 1_500;

/**
 * A turn of a chat waits for a person's word. An owner who has written in private is asked there. Everywhere else those who read along are
 * told that it waits, and not for what; and the owners are asked in their own private chats, where they have ever written in one. Nobody is
 * told of what somebody at a terminal or a program asks: they are asked there.
 */
export async function askOwnersIn(
  parts: AskParts,
  tx: Tx,
  run: RunInput,
  questions: readonly FreshQuestion[],
  causedBy: number,
): Promise<void> {
  const { owners, delivers } = parts;
  if (questions.length === 0) return;
  const place = await placeOf(tx, run);
  const isInChat = place !== null && delivers(place.address);
  if (!isInChat && run.task === null) return;
  const say = (address: Address, text: string, answers: string | null): Promise<unknown> =>
    sendReplyIn(parts, tx, { runId: run.id, address, text, answers }, causedBy, true);
  const ask = async (address: Address): Promise<void> => {
    for (const question of questions) await say(address, wordsOf(parts, run, question, isInChat ? place.address : null), null);
  };
  if (isInChat) {
    if (place.address.chatType === "dm" && owners.includes(writerOf(place.address))) return ask(place.address);
    await say(
      place.address,
      "Before I go on, an owner of this bot has to approve something. I answer as soon as that is done.",
      place.messageId,
    );
  }
  for (const owner of new Set(owners)) {
    const at = owner.indexOf(":");
    const known = await ownerChats(tx, { platform: owner.slice(0, at), peer: owner.slice(at + 1) });
    const address = known.find((one) => delivers(one));
    if (address) await ask(address);
  }
}

async function placeOf(reads: Reads, run: RunInput): Promise<Place | null> {
  if (run.task === null) return { address: run.address, messageId: run.origin?.messageId ?? null };
  const task = await readTask(reads, run.task);
  if (task?.spec.place) return { address: task.spec.place, messageId: null };
  const root = task && (await readRunInput(reads, task.root));
  return root ? { address: root.address, messageId: root.origin?.messageId ?? null } : null;
}

/** With everything that decides, and nothing in it that a platform would take for a form of words: who asks may want it to look like less. */
function wordsOf({ redact }: AskParts, { agent }: RunInput, { approval, tool, args }: FreshQuestion, from: Address | null): string {
  const call = redact(shownCall(tool, args));
  const rest = call.length - SHOWN_CHARACTERS;
  const written =
    from === null ? "" : `${inFence(`written by ${shown(writerOf(from))}${from.chatType === "dm" ? "" : `, in ${shown(from.chat)}`}`)}\n`;
  return [
    `The agent ${agent} waits for your word before it makes this call:`,
    inFence(rest > 0 ? call.slice(0, SHOWN_CHARACTERS).toWellFormed() : call),
    ...(rest > 0 ? [`That is not all of it: ${rest} more characters are in \`guildhall approvals list\`.`] : []),
    `${written}Send /approve ${approval} or /deny ${approval} within an hour.`,
  ].join("\n");
}

function writerOf({ platform, peer }: Address): string {
  return `${platform}:${peer}`;
}

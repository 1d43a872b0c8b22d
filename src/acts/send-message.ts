import { accountsOf } from "../contract/channels.ts";
import type { Address } from "../deciders/routing/address.ts";
import { ANY } from "../deciders/routing/rule.ts";
import { sha256 } from "../kernel/canonical-json.ts";
import { Failure } from "../kernel/failure.ts";
import type { AgentRegistry } from "../records/agents/registry.ts";
import { countMade } from "../records/journal/calls.ts";
import { readSpokenPlaces } from "../records/sessions/spoken-places.ts";
import type { Reads, Tx } from "../store/engine.ts";
import { fileOwner, type ReplyParts, sendReplyIn } from "./send-reply.ts";

export interface MessageParts extends ReplyParts {
  readonly agents: Pick<AgentRegistry, "current">;
}

export interface FileToSend {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export interface MessageToSend {
  readonly runId: string;
  /** The tool that sends it, which may do so only so often in a turn. */
  readonly tool: string;
  readonly address: Address;
  readonly text: string;
  readonly files: readonly FileToSend[];
}

export const MAX_MESSAGES_PER_TURN = 20;
const TOLD_PLACES = 20;
const DEFAULT_ACCOUNT = "default";

/** A message of an agent waits to be delivered, files and all, in the transaction that says that its call was made. */
export async function sendMessageIn(parts: MessageParts, tx: Tx, message: MessageToSend, causedBy: number): Promise<void> {
  const { runId, address, text, tool } = message;
  if ((await countMade(tx, runId, tool)) >= MAX_MESSAGES_PER_TURN)
    throw new Failure("tool.failed", `${MAX_MESSAGES_PER_TURN} messages were sent in this turn, and no more can be`, {
      hint: "Say the rest in your answer.",
    });
  const files = message.files.map(({ name, mediaType, bytes }) => ({ name, mediaType, blob: sha256(bytes) }));
  const id = await sendReplyIn(parts, tx, { runId, address, text, answers: null, files }, causedBy, true);
  if (id === undefined) throw new Failure("tool.failed", `${placeInWords(address)} is not on a channel any more`);
  for (const { bytes } of message.files) await parts.store.blobs.put(tx, fileOwner(id), bytes);
}

/** As agents and people write it: `telegram:42`, `telegram/family:-100#7`. */
export function placeInWords({ platform, account, chat, topic }: Address): string {
  const by = account === DEFAULT_ACCOUNT ? platform : `${platform}/${account}`;
  return `${by}:${chat}${topic === null ? "" : `#${topic}`}`;
}

/**
 * Where a message of this agent goes. Only where it was spoken to through a channel, or where the config has put it by naming the chat:
 * what an agent has read somewhere does not give it new people to write to.
 */
export async function whereToSend(
  parts: MessageParts,
  reads: Reads,
  { agent, address }: { readonly agent: string; readonly address: Address },
  to: string | undefined,
): Promise<Address> {
  const { delivers } = parts;
  if (to === undefined) {
    if (delivers(address)) return address;
    throw new Failure("tool.bad_arguments", "this turn belongs to no conversation on a channel; name one with `to`", { hint: "" });
  }
  const allowed = new Map<string, Address>();
  for (const place of [...(await readSpokenPlaces(reads, agent)), ...boundPlaces(parts, agent)])
    if (delivers(place) && !allowed.has(placeInWords(place))) allowed.set(placeInWords(place), place);
  // By how it is written, and not by its parts: ids of platforms may hold any character.
  const found = allowed.get(to) ?? allowed.get(to.replace(`/${DEFAULT_ACCOUNT}:`, ":"));
  if (found) return found;
  const places = [...allowed.keys()];
  const hint =
    places.length === 0
      ? "There is none yet."
      : `These are: ${places.slice(0, TOLD_PLACES).join(", ")}${places.length > TOLD_PLACES ? ", and others" : ""}.`;
  throw new Failure(
    "request.forbidden",
    `${JSON.stringify(to)} is not a chat from which you were written to, nor one that the config gives you`,
    {
      hint,
    },
  );
}

/** Chats that a rule of this agent names; one that names no account is for all of them. */
function boundPlaces({ agents }: MessageParts, agent: string): Address[] {
  const { bindings, channels } = agents.current.settings.config;
  const named = (field: string | null): string | null => (field === ANY ? null : field);
  return bindings.flatMap((binding): Address[] => {
    const { platform } = binding;
    const chat = named(binding.chat);
    if (binding.agent !== agent || chat === null || binding.topic === ANY) return [];
    const account = named(binding.account);
    const accounts = accountsOf(channels).filter((each) => each.platform === platform && (account === null || each.account === account));
    return accounts.map((each) => ({
      platform,
      account: each.account,
      guild: named(binding.guild),
      chat,
      topic: binding.topic,
      chatType: binding.chatType === null || binding.chatType === ANY ? "group" : binding.chatType,
      peer: named(binding.peer) ?? chat,
      roles: [],
    }));
  });
}

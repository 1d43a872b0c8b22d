import type { DmScope, GroupScope, PlaceScope } from "../../contract/config.ts";
import type { Address } from "./address.ts";
import { encodedPart, type PersonId } from "./session-key.ts";

/** Which sessions may be looked through from one of them, as conditions on keys. What is private stays where it is private. */
export interface SessionReach {
  readonly agent: string;
  readonly keys: readonly string[];
  /** Keys that begin and end so. */
  readonly shapes: readonly { readonly begins: string; readonly ends: string }[];
  /** Sessions of groups and channels in which everybody has the same conversation: those whose keys begin so; null: none. */
  readonly shared: string | null;
  /** Sessions of agents that this one `sees`, too. */
  readonly others: boolean;
}

/** What of an agent decides about its conversations. */
export interface ConversationScopes {
  readonly dmScope: DmScope;
  readonly groupScope: GroupScope;
}

/**
 * Who hears what is said at an address. `private`: this person. `everybody in private`: private chats are one conversation. `personal`: a
 * group in which each has a conversation of their own. `shared`: everybody there.
 */
export type Hearing = "private" | "everybody in private" | "personal" | "shared";

export function hearingOf({ chatType }: Pick<Address, "chatType">, scopes: ConversationScopes): Hearing {
  if (chatType === "dm") return scopes.dmScope === "main" ? "everybody in private" : "private";
  return scopes.groupScope === "per-peer" ? "personal" : "shared";
}

export interface ReachFrom {
  readonly agent: string;
  /** The session from which is looked. */
  readonly sessionKey: string;
  readonly address: Address;
  readonly memoryScope: PlaceScope;
  readonly hearing: Hearing;
  /** Every id of who speaks. */
  readonly ids: readonly PersonId[];
}

/**
 * `agent`: what everybody heard in groups; in private also what this person said in private, anywhere, and what other agents were told
 * that the operator lets this one see. `chat`: the topics of this chat. `topic`: this conversation.
 */
export function sessionReach({ agent, sessionKey, address, memoryScope, hearing, ids }: ReachFrom): SessionReach {
  const here = { agent, keys: [sessionKey], shapes: [], shared: null, others: false };
  const isPrivate = address.chatType === "dm";
  if (memoryScope === "topic" || (memoryScope === "chat" && isPrivate)) return here;
  const own = `agent:${encodedPart(agent)}:`;
  if (memoryScope === "chat") {
    const account = address.account === "default" ? "" : `${encodedPart(address.account)}:`;
    const chat = `${own}${encodedPart(address.platform)}:${account}${address.chatType}:${encodedPart(address.chat)}`;
    return { ...here, keys: [sessionKey, chat], shapes: perPeer(`${chat}:`, ids), shared: `${chat}:` };
  }
  if (!isPrivate) return { ...here, shapes: ids.flatMap((id) => perPeer(`${own}${encodedPart(id.platform)}:`, [id])), shared: own };
  return {
    agent,
    keys: [sessionKey, ...(hearing === "everybody in private" ? [`${own}main`] : [])],
    shapes: ids.flatMap((id) => {
      const begins = `${own}${encodedPart(id.platform)}:`;
      return [{ begins, ends: `:dm:${encodedPart(id.peer)}` }, ...perPeer(begins, [id])];
    }),
    shared: own,
    others: true,
  };
}

function perPeer(begins: string, ids: readonly PersonId[]): { begins: string; ends: string }[] {
  return ids.map((id) => ({ begins, ends: `:peer:${encodedPart(id.peer)}` }));
}

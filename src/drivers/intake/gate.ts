import type { ChannelAccount } from "../../contract/channels.ts";
import type { ChatMessage } from "../../kernel/channel.ts";

/** `let in`; `not ours`: said in a group to somebody else; `stranger`: said to us by somebody who is not on the list. */
export type Gate = "let in" | "not ours" | "stranger";

export interface GateFacts {
  readonly owners: readonly string[];
  isPaired(peer: string): boolean;
}

/** Whether a channel takes a message. Who is on the list is decided by the id that the platform gives, never by a name. */
export function gate(account: ChannelAccount, message: ChatMessage, facts: GateFacts): Gate {
  const { sender, place, isForUs } = message;
  if (place.chatType !== "dm" && account.requireMention && !isForUs) return "not ours";
  return isOnList(account, sender.id, facts.owners) || facts.isPaired(sender.id) ? "let in" : "stranger";
}

/** Without asking who was paired. */
export function isOnList({ platform, allow }: ChannelAccount, peer: string, owners: readonly string[]): boolean {
  return allow.includes("*") || allow.includes(peer) || owners.includes(`${platform}:${peer}`);
}

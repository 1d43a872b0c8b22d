import type { Binding } from "../../contract/bindings.ts";
import type { Address } from "./address.ts";
import { BINDING_TIERS, type BindingTier, type Conditions, type Miss, type Rule } from "./rule.ts";

/** `telegram -100123456, topic 42 → coder`. */
export function bindingInWords(binding: Binding): string {
  return `${conditionsInWords(binding)} → ${binding.agent}`;
}

export function conditionsInWords({ platform, account, guild, chat, topic, chatType, peer, roles }: Binding): string {
  const parts: readonly [string, string | null][] = [
    ["topic", topic],
    ["account", account],
    ["guild", guild],
    ["chat type", chatType],
    ["peer", peer],
    ["roles", roles?.join(" or ") ?? null],
  ];
  const place = chat === null ? platform : `${platform} ${chat}`;
  return [place, ...parts.filter(([, value]) => value !== null).map(([name, value]) => `${name} ${value}`)].join(", ");
}

/** Why the address does not fit the rule. */
export function missInWords(asks: Conditions, miss: Miss, address: Address): string {
  switch (miss) {
    case "platform":
      return "another platform";
    case "account":
      return "another account";
    case "guild":
      return address.guild === null ? "not in a guild" : "another guild";
    case "chat":
      return "another chat";
    case "topic":
      return address.topic === null ? "not in a topic" : "another topic";
    case "chatType":
      return `another type of chat: ${address.chatType}`;
    case "peer":
      return "another sender";
    case "roles":
      return asks.roles?.length === 0 || address.roles.length === 0 ? "the sender has no role" : "matches no role";
  }
}

/** Why a rule that fits does not win. `winner`: how to call the one that does. */
export function lossInWords(rule: Rule, better: Rule, winner: string): string {
  if (BINDING_TIERS.indexOf(rule.tier) > BINDING_TIERS.indexOf(better.tier)) return `less specific than ${winner}`;
  if (rule.names < better.names) return `less specific than ${winner}, which names more`;
  return `as specific as ${winner}, which stands first`;
}

const NAMED_BY_TIER: Readonly<Record<BindingTier, string>> = {
  topic: "this topic",
  chat: "this chat",
  peer: "this sender",
  "guild+type": "this guild and type of chat",
  guild: "this guild",
  type: "this type of chat",
  platform: "this platform",
};

/** `line 21 names this topic, and …`, with everything that the tier does not tell. */
export function winInWords(rule: Rule, name: string): string {
  const withRoles = rule.tier === "guild+type" && rule.chatType === null;
  const accountToo = rule.tier === "platform" && rule.account !== null;
  const named = withRoles ? "this guild and a role of the sender" : accountToo ? "this platform and account" : NAMED_BY_TIER[rule.tier];
  return `${name} names ${named}, and no rule that matches is more specific`;
}

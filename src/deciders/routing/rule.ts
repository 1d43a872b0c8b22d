import type { Binding } from "../../contract/bindings.ts";
import type { Tier } from "../../contract/wire.ts";
import type { Address } from "./address.ts";

/** Tiers that a binding can have, most specific first. */
export const BINDING_TIERS = ["topic", "chat", "peer", "guild+type", "guild", "type", "platform"] as const satisfies readonly Tier[];
export type BindingTier = (typeof BINDING_TIERS)[number];

export const ANY = "*";

/** What a binding asks of an address; null: nothing. Of what every address has, `"*"` asks nothing. */
export interface Conditions {
  readonly platform: string;
  readonly account: string | null;
  readonly guild: string | null;
  readonly chat: string | null;
  readonly topic: string | null;
  readonly chatType: string | null;
  readonly peer: string | null;
  /** One of these; empty: any role at all. */
  readonly roles: readonly string[] | null;
}

/** A binding with its place among the others. The place does not depend on the address: of those that match, the first wins. */
export interface Rule extends Conditions {
  readonly index: number;
  readonly binding: Binding;
  readonly tier: BindingTier;
  /** How many fields it names. */
  readonly names: number;
  readonly rank: number;
}

/** What of the address does not fit, the first thing only. */
export type Miss = keyof Conditions;

/** Null: the address fits. Deciding and explaining both ask here and nowhere else. */
export function missOf(asks: Conditions, address: Address): Miss | null {
  if (asks.platform !== address.platform) return "platform";
  if (asks.chat !== null && asks.chat !== address.chat) return "chat";
  if (asks.topic !== null && (asks.topic === ANY ? address.topic === null : asks.topic !== address.topic)) return "topic";
  if (asks.peer !== null && asks.peer !== address.peer) return "peer";
  if (asks.guild !== null && (asks.guild === ANY ? address.guild === null : asks.guild !== address.guild)) return "guild";
  if (asks.chatType !== null && asks.chatType !== address.chatType) return "chatType";
  if (asks.account !== null && asks.account !== address.account) return "account";
  if (asks.roles !== null && !hasOneOf(asks.roles, address.roles)) return "roles";
  return null;
}

function hasOneOf(wanted: readonly string[], roles: readonly string[]): boolean {
  if (wanted.length === 0) return roles.length > 0;
  for (const role of roles) if (wanted.includes(role)) return true;
  return false;
}

/** In the order of their rank. */
export function rulesOf(bindings: readonly Binding[]): Rule[] {
  const unranked = bindings.map((binding, index) => {
    const asks = conditionsOf(binding);
    return { ...asks, index, binding, tier: tierOf(asks), names: countNamed(asks) };
  });
  const before = (a: (typeof unranked)[number], b: (typeof unranked)[number]): number =>
    BINDING_TIERS.indexOf(a.tier) - BINDING_TIERS.indexOf(b.tier) || b.names - a.names || a.index - b.index;
  return unranked.sort(before).map((rule, rank): Rule => ({ ...rule, rank }));
}

function conditionsOf(binding: Binding): Conditions {
  const { platform, guild, topic, roles } = binding;
  return {
    platform,
    account: named(binding.account),
    guild,
    chat: named(binding.chat),
    topic,
    chatType: named(binding.chatType),
    peer: named(binding.peer),
    roles: roles?.includes(ANY) ? [] : roles,
  };
}

function tierOf(asks: Conditions): BindingTier {
  if (named(asks.topic) !== null) return "topic";
  if (asks.chat !== null) return "chat";
  if (asks.peer !== null) return "peer";
  if (named(asks.guild) !== null) return asks.chatType !== null || namesRoles(asks) ? "guild+type" : "guild";
  return asks.chatType !== null ? "type" : "platform";
}

function countNamed(asks: Conditions): number {
  const single = [asks.platform, asks.account, asks.guild, asks.chat, asks.topic, asks.chatType, asks.peer];
  return single.filter((field) => named(field) !== null).length + (namesRoles(asks) ? 1 : 0);
}

function namesRoles(asks: Conditions): boolean {
  return asks.roles !== null && asks.roles.length > 0;
}

function named<Field extends string>(field: Field | null): Field | null {
  return field === ANY ? null : field;
}

import fc from "fast-check";
import type { Binding } from "../src/contract/bindings.ts";
import type { Address } from "../src/deciders/routing/address.ts";

/** Routing as contract.md §2 tells it, sentence by sentence, and slowly. Shares nothing with the router but the words for its input. */

const SINGLE = ["platform", "account", "guild", "chat", "topic", "chatType", "peer"] as const;
/** "topic (chat and topic) → chat → peer → guild+type (guild with chat_type or with roles) → guild → type → platform". */
const TIERS: readonly [string, (named: ReadonlySet<string>) => boolean][] = [
  ["topic", (named) => named.has("chat") && named.has("topic")],
  ["chat", (named) => named.has("chat")],
  ["peer", (named) => named.has("peer")],
  ["guild+type", (named) => named.has("guild") && (named.has("chatType") || named.has("roles"))],
  ["guild", (named) => named.has("guild")],
  ["type", (named) => named.has("chatType")],
  ["platform", (named) => named.has("platform")],
];

/** "All fields given must match; roles matches any of those listed; * requires the field to be present." */
export function fits(binding: Binding, address: Address): boolean {
  const fieldsFit = SINGLE.every((field) => {
    const [wanted, has] = [binding[field], address[field]];
    return wanted === null || (has !== null && (wanted === "*" || wanted === has));
  });
  const rolesFit = binding.roles === null || binding.roles.some((wanted) => address.roles.some((has) => wanted === "*" || wanted === has));
  return fieldsFit && rolesFit;
}

/** "* counts for nothing." */
export function standing(binding: Binding): { readonly tier: string; readonly place: number; readonly names: number } {
  const named = new Set<string>(SINGLE.filter((field) => binding[field] !== null && binding[field] !== "*"));
  if (binding.roles !== null && !binding.roles.includes("*")) named.add("roles");
  const place = TIERS.findIndex(([, belongs]) => belongs(named));
  return { tier: TIERS[place]?.[0] as string, place, names: named.size };
}

/** "Tiers, most specific first; within a tier more matched fields win; then the order in the file." */
export function oracleOf(bindings: readonly Binding[]): (address: Address) => { readonly index: number; readonly tier: string } | null {
  const tiers = TIERS.map(([tier]) => ({ tier, members: bindings.flatMap((rule, index) => member(rule, index, tier)) }));
  return (address) => {
    for (const { tier, members } of tiers) {
      const fitting = members.filter(({ rule }) => fits(rule, address));
      const most = Math.max(...fitting.map(({ names }) => names));
      const first = fitting.find(({ names }) => names === most);
      if (first) return { index: first.index, tier };
    }
    return null;
  };
}

function member(rule: Binding, index: number, tier: string): { readonly rule: Binding; readonly index: number; readonly names: number }[] {
  const own = standing(rule);
  return own.tier === tier ? [{ rule, index, names: own.names }] : [];
}

const PLATFORMS = ["x", "x", "x", "y"];
const IDS = ["1", "2", "3"];
const ROLES = ["1", "2", "3", "4"];

/** Small alphabets: rules and addresses meet often. */
const sometimes = (id: fc.Arbitrary<string>) => fc.option(id, { freq: 2 });
const wanted = fc.constantFrom(...IDS, ...IDS, "*");

export const anyBinding: fc.Arbitrary<Binding> = fc
  .record({
    platform: fc.constantFrom(...PLATFORMS),
    account: sometimes(fc.constantFrom("default", "1", "*")),
    guild: sometimes(wanted),
    chat: sometimes(wanted),
    topic: sometimes(wanted),
    chatType: fc.option(fc.constantFrom("dm", "group", "channel", "*"), { freq: 2 }),
    peer: sometimes(wanted),
    roles: fc.option(fc.uniqueArray(fc.constantFrom(...ROLES, "*"), { minLength: 1, maxLength: 3 }), { freq: 2 }),
  })
  .map((fields) => ({ ...fields, agent: "" }) as Binding)
  // What the config refuses is left out of the rule, not the rule.
  .map((rule) => (rule.chat === null || (rule.chat === "*" && rule.topic !== "*") ? { ...rule, topic: null } : rule))
  .map((rule) => (rule.guild === null || rule.guild === "*" ? { ...rule, roles: null } : rule));

/** Every binding has an agent of its own, so that the agent tells which one won. */
export const anyBindings = (maxLength: number): fc.Arbitrary<Binding[]> =>
  fc.array(anyBinding, { maxLength, size: "max" }).map((rules) => rules.map((rule, index) => ({ ...rule, agent: `rule-${index}` })));

export const anyAddress: fc.Arbitrary<Address> = fc.record({
  platform: fc.constantFrom(...PLATFORMS),
  account: fc.constantFrom("default", "1", "2"),
  guild: fc.option(fc.constantFrom(...IDS), { freq: 3 }),
  chat: fc.constantFrom(...IDS),
  topic: fc.option(fc.constantFrom(...IDS), { freq: 2 }),
  chatType: fc.constantFrom("dm" as const, "group" as const, "channel" as const),
  peer: fc.constantFrom(...IDS),
  roles: fc.uniqueArray(fc.constantFrom(...ROLES), { maxLength: 3 }),
});

import type { Binding } from "../../src/contract/bindings.ts";
import type { Address } from "../../src/deciders/routing/address.ts";

/** Rules and addresses that every side can be asked: chats, topics, direct messages, guilds with and without roles, whole platforms. */

export const PLATFORMS = ["telegram", "discord", "slack", "whatsapp", "signal"] as const;
const AGENTS = 100;
const GUILDS = 400;
const ROLES = 20;
const TOPICS = 50;

const NOTHING = { account: null, guild: null, chat: null, topic: null, chatType: null, peer: null, roles: null } as const;
/** Of twenty rules. */
const KINDS = [
  "chat",
  "chat",
  "chat",
  "chat",
  "chat",
  "chat",
  "chat",
  "chat",
  "topic",
  "topic",
  "topic",
  "topic",
  "direct",
  "direct",
  "direct",
  "direct",
  "roles",
  "roles",
  "roles",
  "guild",
] as const;
type Kind = (typeof KINDS)[number];

export const agentNames = (): string[] => ["main", ...Array.from({ length: AGENTS }, (_, index) => `agent-${index}`)];

/** No two of them are alike. Every second platform has a rule for what nothing else matches. */
export function bindingsFor(count: number): Binding[] {
  const whole = PLATFORMS.filter((_, index) => index % 2 === 0).map((platform): Binding => ({ ...NOTHING, agent: "agent-0", platform }));
  const rest = Array.from({ length: count - whole.length }, (_, index): Binding => {
    const rule = { ...NOTHING, agent: `agent-${index % AGENTS}`, platform: PLATFORMS[index % PLATFORMS.length] as string };
    return { ...rule, ...conditionsOf(kindOf(index), index) };
  });
  return [...rest, ...whole];
}

const kindOf = (index: number): Kind => KINDS[Math.floor(index / PLATFORMS.length) % KINDS.length] as Kind;

function conditionsOf(kind: Kind, index: number): Partial<Binding> {
  switch (kind) {
    case "chat":
      return { chat: chatOf(index) };
    case "topic":
      return { chat: chatOf(index), topic: String(index % TOPICS) };
    case "direct":
      return { chat: userOf(index), chatType: "dm" };
    case "roles":
      return { guild: guildOf(index), roles: [`role-${index % ROLES}`] };
    case "guild":
      return { guild: guildOf(index) };
  }
}

const chatOf = (index: number): string => `-100${1_000_000 + index}`;
const userOf = (index: number): string => `${7_000_000 + index}`;
const guildOf = (index: number): string => `guild-${index % GUILDS}`;

/** Half of them meet a rule of their own, the others fall through. Texts are made anew, and no address comes twice. */
export function* addresses(rules: number, from: number, count: number): Generator<Address, void, void> {
  for (let at = from; at < from + count; at++) {
    // Numbers that jump about, the same in every process.
    const random = Math.imul(at + 1, 2_654_435_761) >>> 0;
    const index = random % rules;
    yield addressOf(kindOf(index), index, at, random);
  }
}

function addressOf(kind: Kind, index: number, at: number, random: number): Address {
  const meets = random % 7 < 4;
  const platform = PLATFORMS[index % PLATFORMS.length] as string;
  const base = { platform, account: "default", guild: null, topic: null, chatType: "group" as const, peer: `9${at}`, roles: [] };
  switch (kind) {
    case "chat":
      return { ...base, chat: meets ? chatOf(index) : `-200${at}` };
    case "topic":
      return { ...base, chat: meets ? chatOf(index) : `-200${at}`, topic: String(meets ? index % TOPICS : at) };
    case "direct":
      return meets ? { ...base, chat: userOf(index), peer: userOf(index), chatType: "dm" } : { ...base, chat: `9${at}`, chatType: "dm" };
    case "roles":
      return { ...base, chat: `-300${at}`, guild: guildOf(index), roles: [`role-${meets ? index % ROLES : ROLES}`, "everybody"] };
    case "guild":
      return { ...base, chat: `-300${at}`, guild: meets ? guildOf(index) : `guild-${at}` };
  }
}

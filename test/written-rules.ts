import { KNOWN_CHANNELS } from "../src/contract/bindings.ts";
import { type Config, configSchema } from "../src/contract/config.ts";
import type { Address } from "../src/deciders/routing/address.ts";
import { Router } from "../src/deciders/routing/router.ts";
import { routingOfConfig } from "../src/deciders/routing/routing-of.ts";

/** Rules and addresses in a line each, as the table of routing cases writes them. */

const CHAT_TYPES = ["dm", "group", "channel"];

/** `telegram -100 topic=42`: the platform, its chat, then fields. */
export function writtenBinding(agent: string, text: string): object {
  const { platform, chat, fields } = words(text);
  const given = { ...fields, ...(fields.roles !== undefined && { roles: fields.roles.split(",") }) };
  if (chat !== undefined && KNOWN_CHANNELS.some((name) => name === platform)) return { agent, [platform]: chat, ...given };
  return { agent, match: { platform, ...(chat !== undefined && { chat }), ...given } };
}

/** `telegram -100 topic=42 dm`: a group, where no type of chat stands; the sender `p`, where none does. */
export function writtenAddress(text: string): Address {
  const { platform, chat, fields } = words(text);
  return {
    platform,
    account: fields.account ?? "default",
    guild: fields.guild ?? null,
    chat: chat ?? "c",
    topic: fields.topic ?? null,
    chatType: (fields.chat_type ?? "group") as Address["chatType"],
    peer: fields.peer ?? "p",
    roles: fields.roles?.split(",") ?? [],
  };
}

/** Rules separated by `|` are for the agents a, b, c …, in this order; `main` is the default. */
export function writtenConfig(rules: string, more: object = {}): Config {
  const written = rules.split("|").flatMap((rule) => rule.trim() || []);
  const names = written.map((_, index) => String.fromCharCode("a".charCodeAt(0) + index));
  const bindings = written.map((rule, index) => writtenBinding(names[index] as string, rule));
  return configSchema.parse({ agents: Object.fromEntries(["main", ...names].map((name) => [name, {}])), bindings, ...more });
}

/** The first rule stands on line 1, and so on. */
export function routerFor(config: Config): Router {
  return new Router(routingOfConfig(config, (index) => index + 1));
}

function words(text: string): { platform: string; chat: string | undefined; fields: Record<string, string> } {
  const [platform = "", ...rest] = text.trim().split(/\s+/);
  const fields: Record<string, string> = {};
  let chat: string | undefined;
  for (const word of rest) {
    const [name, value] = word.split("=");
    if (value !== undefined) fields[name as string] = value;
    else if (CHAT_TYPES.includes(word)) fields.chat_type = word;
    else chat = word;
  }
  return { platform, chat, fields };
}

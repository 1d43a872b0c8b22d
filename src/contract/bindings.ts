import { z } from "zod";
import { identifier } from "./text.ts";

/** Channels whose name may stand as a key of a binding; any other platform is named by `match`. */
export const KNOWN_CHANNELS = ["telegram", "discord", "slack", "whatsapp", "webhook", "web", "terminal"] as const;
export const CHAT_TYPES = ["dm", "group", "channel"] as const;
export type ChatType = (typeof CHAT_TYPES)[number];

/** Ids of digits are numbers in YAML; those that a number cannot hold exactly are refused where the file is read. */
const id = z.union([identifier, z.int().transform(String)], 'expected an id, or "*"');
const fields = {
  account: id.optional(),
  guild: id.optional(),
  /** Another name for `guild`. */
  team: id.optional(),
  topic: id.optional(),
  chat_type: z.enum([...CHAT_TYPES, "*"]).optional(),
  peer: id.optional(),
  roles: z.array(id).min(1).max(100).optional(),
};
const shorthand = Object.fromEntries(KNOWN_CHANNELS.map((name) => [name, id.optional()])) as Record<
  (typeof KNOWN_CHANNELS)[number],
  z.ZodOptional<typeof id>
>;
const match = z.strictObject({ platform: identifier, chat: id.optional(), ...fields });

export const TWO_GUILDS = "team is another name for guild, and they differ";

/** Whoever writes both must mean the same by them. */
export function hasOneGuild({
  guild,
  team,
}: {
  readonly guild?: string | null | undefined;
  readonly team?: string | null | undefined;
}): boolean {
  return (guild ?? team) === (team ?? guild);
}

/** One routing rule. Null: the rule does not ask. `"*"`: the address must have it, whatever it is. */
export interface Binding {
  readonly agent: string;
  readonly platform: string;
  readonly account: string | null;
  readonly guild: string | null;
  readonly chat: string | null;
  readonly topic: string | null;
  readonly chatType: ChatType | "*" | null;
  readonly peer: string | null;
  readonly roles: readonly string[] | null;
}

export const binding = z
  .strictObject({ agent: identifier, match: match.optional(), ...shorthand, ...fields })
  .transform((written, context): Binding => {
    const { agent, match: long, ...short } = written;
    const complain = (message: string, path: (string | number)[] = []): never => {
      context.addIssue({ code: "custom", message, path });
      return z.NEVER;
    };
    const named = KNOWN_CHANNELS.filter((name) => short[name] !== undefined);
    const beside = Object.keys(short).find((key) => short[key as keyof typeof short] !== undefined);
    if (long && beside) return complain(`write "${beside}" inside match, or everything beside agent`, [beside]);
    if (named.length > 1) return complain(`a binding is for one platform; this names ${named.join(" and ")}`, [named[1] as string]);
    const [channel] = named;
    const given = long ?? (channel === undefined ? undefined : { ...short, platform: channel as string, chat: short[channel] });
    if (!given) return complain(`a binding names a platform: a channel such as telegram: "<chat id>", or match: { platform: … }`);
    const at = (field: string): (string | number)[] => (long ? ["match", field] : [field]);
    if (given.platform === "*") return complain("a binding is for one platform; write its name", at("platform"));
    if (!hasOneGuild(given)) return complain(TWO_GUILDS, at("team"));
    const guild = given.guild ?? given.team;
    const hasNoChat = isNamed(given.topic) ? !isNamed(given.chat) : given.topic !== undefined && given.chat === undefined;
    if (hasNoChat) return complain("a topic belongs to a chat; name the chat too", at("topic"));
    if (given.roles !== undefined && !isNamed(guild)) return complain("roles belong to a guild; name the guild too", at("roles"));
    return {
      agent,
      platform: given.platform,
      account: given.account ?? null,
      guild: guild ?? null,
      chat: given.chat ?? null,
      topic: given.topic ?? null,
      chatType: given.chat_type ?? null,
      peer: given.peer ?? null,
      roles: given.roles ?? null,
    };
  });

function isNamed(field: string | undefined): boolean {
  return field !== undefined && field !== "*";
}

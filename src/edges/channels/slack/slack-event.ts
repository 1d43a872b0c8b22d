import { z } from "zod";
import type { ChatFile, ChatMessage } from "../../../kernel/channel.ts";
import type { Self } from "./slack-api.ts";
import { mentionedIn, readable } from "./slack-text.ts";

const file = z.object({
  id: z.string().min(1).max(100),
  name: z.string().nullish(),
  mimetype: z.string().nullish(),
  size: z.number().nullish(),
  mode: z.string().nullish(),
  is_external: z.boolean().nullish(),
});
const attachment = z.object({
  is_share: z.boolean().nullish(),
  is_msg_unfurl: z.boolean().nullish(),
  author_id: z.string().nullish(),
  text: z.string().nullish(),
  fallback: z.string().nullish(),
});
const event = z.object({
  type: z.string(),
  subtype: z.string().nullish(),
  hidden: z.boolean().nullish(),
  channel: z.string().min(1),
  channel_type: z.string().nullish(),
  user: z.string().min(1),
  bot_id: z.string().nullish(),
  ts: z.string().regex(/^\d+\.\d+$/),
  thread_ts: z.string().nullish(),
  parent_user_id: z.string().nullish(),
  text: z.string().nullish(),
  files: z.array(file).nullish().catch([]),
  attachments: z.array(attachment).nullish().catch([]),
});
const callback = z.object({ type: z.literal("event_callback"), team_id: z.string().nullish(), event });
type SlackEvent = z.output<typeof event>;

/** What a message needs to be known beside what stands in it. */
export interface Surroundings {
  readonly self: Self;
  nameOf(user: string): Promise<string | null>;
  /** Whether the thread began with somebody calling us. */
  isOurThread(channel: string, root: string): Promise<boolean>;
}

/** Kinds of messages in which a person says something; all others tell what happened to messages and members. */
const SAID = new Set(["file_share", "thread_broadcast", "me_message"]);
const SLACKBOT = "USLACKBOT";
/** Of those who are named in a message, so many are asked about: Slack allows some dozens a minute, for everybody together. */
const MAX_ASKED = 20;

/**
 * A post of the Events API as a message; null: nobody has said anything to anybody.
 *
 * In a channel every message that is not in a thread begins one: its topic is the thread that our answer opens. What is said in that
 * thread later has the same topic, so that a thread is one conversation and two threads are two. What calls us comes twice, as `message`
 * and as `app_mention`, and is known by channel and time, which are the same in both.
 */
export async function messageIn(payload: unknown, { self, nameOf, isOurThread }: Surroundings): Promise<ChatMessage | null> {
  const parsed = callback.safeParse(payload);
  if (!parsed.success || !isSaid(parsed.data.event, self)) return null;
  const { event: said, team_id: team } = parsed.data;
  const { channel, user, ts, text, thread_ts: thread } = said;
  const isPrivate = said.channel_type === "im" || channel.startsWith("D");
  const mentioned = mentionedIn(text ?? "");
  const people = [...new Set([user, ...mentioned.filter((id) => id !== self.id)])].slice(0, MAX_ASKED);
  const names = new Map(await Promise.all(people.map(async (id) => [id, await nameOf(id)] as const)));
  const nameIn = (id: string): string | null => names.get(id) ?? null;
  const files = (said.files ?? []).flatMap(fileOf);
  const quoted = quotedIn(said, self, nameIn);
  const words = readable(text ?? "", self, nameIn);
  if (words === "" && files.length === 0 && !quoted) return null;
  const isForUs =
    isPrivate ||
    said.type === "app_mention" ||
    mentioned.includes(self.id) ||
    said.parent_user_id === self.id ||
    (!!thread && thread !== ts && (await isOurThread(channel, thread)));
  return {
    id: `${channel}:${ts}`,
    place: {
      guild: team ?? self.team,
      chat: channel,
      topic: thread ?? (isPrivate ? null : ts),
      chatType: isPrivate ? "dm" : "channel",
    },
    sender: { id: user, name: nameIn(user) },
    text: words || (quoted ? " " : ""),
    isForUs,
    messageId: ts,
    ...(quoted ? { quoted } : {}),
    ...(files.length > 0 ? { files } : {}),
  };
}

function isSaid({ type, subtype, hidden, bot_id, user }: SlackEvent, self: Self): boolean {
  if (type !== "message" && type !== "app_mention") return false;
  if (hidden || (subtype && !SAID.has(subtype))) return false;
  return !bot_id && user !== self.id && user !== SLACKBOT;
}

/** What lies elsewhere, or is not shown to us, is not ours to fetch. */
function fileOf({ id, name, mimetype, size, mode, is_external }: z.output<typeof file>): ChatFile[] {
  if (is_external || mode === "external" || mode === "tombstone" || mode === "hidden_by_limit") return [];
  return [{ ref: id, name: name || id, mediaType: mimetype || "application/octet-stream", bytes: size ?? null }];
}

function quotedIn({ attachments }: SlackEvent, self: Self, nameOf: (id: string) => string | null): ChatMessage["quoted"] {
  const shared = attachments?.find(({ is_share, is_msg_unfurl }) => is_share || is_msg_unfurl);
  const text = shared && (shared.text || shared.fallback);
  if (!text) return undefined;
  return { by: shared.author_id ?? null, text: readable(text, self, nameOf), isForwarded: shared.is_share === true };
}

import type { Shown } from "./stand-in.ts";

/** A message as the Bot API tells of it. */
// biome-ignore lint/suspicious/noExplicitAny: it has a hundred kinds of content
export type WireMessage = { readonly message_id: number; readonly chat: { readonly id: number } } & Record<string, any>;

/** What the bot has written, as people see it now. */
export type BotMessage = { -readonly [Key in keyof Shown]: Shown[Key] };

export interface KnownChat {
  readonly id: number;
  readonly type: "private" | "group" | "supergroup" | "channel";
  readonly topics: Set<number>;
  readonly messages: Map<number, WireMessage>;
  readonly ours: Map<number, BotMessage>;
  lastId: number;
  movedTo: number | null;
  /** It was told to wait until then. */
  notBefore: number;
  lastSentAt: number;
}

/** Chats that the bot can know: somebody has written in them. */
export class Chats {
  readonly #known = new Map<number, KnownChat>();

  get(id: unknown): KnownChat | undefined {
    return this.#known.get(Number(id));
  }

  meet(id: string, type?: KnownChat["type"]): KnownChat {
    if (!/^-?[1-9]\d*$/.test(id)) throw new Error(`"${id}" cannot be an id of Telegram: they are numbers, and those of groups negative`);
    const number = Number(id);
    const known = this.#known.get(number);
    if (known) return known;
    const kind = type ?? (number > 0 ? "private" : id.startsWith("-100") ? "supergroup" : "group");
    const chat: KnownChat = {
      ...{ id: number, type: kind, topics: new Set<number>(), messages: new Map(), ours: new Map() },
      ...{ lastId: 100, movedTo: null, notBefore: 0, lastSentAt: Number.NEGATIVE_INFINITY },
    };
    this.#known.set(number, chat);
    return chat;
  }
}

/** As updates and answers show a chat. */
export function wireChat(chat: KnownChat): { readonly id: number } & Readonly<Record<string, unknown>> {
  const { id, type, topics } = chat;
  if (type === "private") return { id, type, first_name: `Person ${id}` };
  return { id, type, title: `Chat ${id}`, ...(topics.size > 0 ? { is_forum: true } : {}) };
}

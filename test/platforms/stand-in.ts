/**
 * A chat platform on this machine: it speaks the platform's own protocol and checks what the real one checks, so that the channels are
 * tried through the platforms' real clients. One such interface for all of them, so that one suite tries them all.
 */
export interface StandIn {
  readonly platform: string;
  /** What stands under `channels.<platform>` to use it: credentials and `api_url`. */
  readonly account: Readonly<Record<string, unknown>>;
  /** Of the bot, as the platform knows it. */
  readonly botId: string;
  /** Where the daemon listens, for platforms that post to it; called whenever a daemon has started. */
  attach(daemonUrl: string): void;
  /** Somebody writes. Resolves when the platform has taken it from the person; it may reach the bot much later. Answers the message's id. */
  say(text: string, how?: Saying): Promise<string>;
  /** What people see in a chat now that the bot has written, oldest first; edited messages as they are now. */
  shown(chat: string, topic?: string): readonly Shown[];
  /** Everything that the bot has sent and the platform has accepted, in that order; edits not counted. */
  readonly accepted: readonly Shown[];
  /** How often the bot has broken a rule of the platform that a real one would punish (two pollers, wrong signature, too long, …), in words. */
  readonly complaints: readonly string[];
  /** From now on, for the next `times` requests to send (of whatever chat, or of one). */
  trouble(kind: Trouble, times?: number, chat?: string): void;
  close(): Promise<void>;
}

/**
 * `rate limit`: refused with the platform's own words and a time to wait; `server error`: 5xx, nothing happened; `lose answer`: it is accepted
 * and shown, and the connection is cut before the answer; `cut`: the connection is cut before anything happens; `bad token`: 401 until
 * `trouble("none")`; `gone`: the chat does not take messages of the bot.
 */
export type Trouble = "rate limit" | "server error" | "lose answer" | "cut" | "bad token" | "gone" | "none";

export interface Saying {
  /** Who; "7" by default, whom tests put on the list. */
  readonly peer?: string;
  readonly name?: string;
  /** A group or channel; absent: in private. */
  readonly group?: string;
  readonly topic?: string;
  /** Calls the bot by its name, as the platform does it. */
  readonly mentions?: boolean;
  /** The message of the bot that it answers. */
  readonly answers?: string;
  readonly quotes?: { readonly text: string; readonly forwarded?: boolean };
  readonly files?: readonly { readonly name: string; readonly mediaType: string; readonly data: Uint8Array }[];
}

export interface Shown {
  readonly id: string;
  readonly chat: string;
  readonly topic: string | null;
  /** As a person reads it, without any markup. */
  readonly text: string;
  /** As it was sent. */
  readonly raw: string;
  readonly answers: string | null;
  readonly file: { readonly name: string; readonly data: Uint8Array } | null;
  /** Marks of the bot on messages are told elsewhere. */
  readonly edits: number;
}

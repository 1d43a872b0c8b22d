/**
 * Port: one account on a chat platform. A channel turns what the platform says into messages, and replies into what the platform takes;
 * it keeps nothing and decides nothing. What must survive, who may speak and who answers are settled by whoever holds it.
 */
export interface Channel {
  readonly abilities: ChannelAbilities;
  /** Connects, and takes what comes until the signal aborts. Throws a ChannelTrouble when it cannot (go on); whoever holds it calls again. */
  listen(inbound: Inbound, signal: AbortSignal): Promise<void>;
  /** What the platform posts to us. Any node may be asked, also one that does not listen. It answers 2xx only after `take` has resolved. */
  receive?(request: Request, inbound: PostedInbound): Promise<Response>;
  /** A reply in the platform's own form, cut where its messages must end: the same text always gives the same parts. */
  partsOf(text: string): readonly Part[];
  /** Throws a SendTrouble. Answers the platform's id of what it now shows. */
  send(message: Outbound, signal: AbortSignal): Promise<{ readonly id: string }>;
  /** In the place of a message of ours. Twice the same is the same as once. */
  edit?(message: Outbound, id: string, signal: AbortSignal): Promise<void>;
  /** `answers`: the message that is being answered; some platforms show it only there. */
  typing?(place: ChatPlace, signal: AbortSignal, answers?: string): Promise<void>;
  /** A mark on somebody's message; null takes ours away. */
  react?(place: ChatPlace, messageId: string, mark: Mark | null, signal: AbortSignal): Promise<void>;
  /** What somebody has sent along; the stream ends at `maxBytes` with an error. */
  download?(file: ChatFile, maxBytes: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

export interface ChannelAbilities {
  /** What was sent with the same key before is not shown a second time, for at least two minutes. */
  readonly dedupes: boolean;
  /** How often a message may be edited while it is being written, at most; absent: it cannot be. */
  readonly editEveryMs?: number;
  /** How long the platform shows that somebody types; absent: it does not. */
  readonly typingMs?: number;
  readonly reacts: boolean;
  readonly sendsFiles: boolean;
  /**
   * How long what `listen` has asked last can go on at the platform when its node is stopped or cut off, where two at once would disturb each
   * other: another node waits so long before it listens. Absent: nothing of it does harm.
   */
  readonly lingersMs?: number;
}

/** `seen`: it was taken up; `done`: it was answered; `failed`: it was not. */
export type Mark = "seen" | "done" | "failed";

/** Where in the platform something is said. */
export interface ChatPlace {
  readonly guild: string | null;
  readonly chat: string;
  readonly topic: string | null;
  readonly chatType: "dm" | "group" | "channel";
}

export interface ChatMessage {
  /** Of the event, in its account: the same message comes with the same id. */
  readonly id: string;
  readonly place: ChatPlace;
  readonly sender: { readonly id: string; readonly name: string | null; readonly roles?: readonly string[] };
  /** As it was written, without the words that only call us. */
  readonly text: string;
  /** Said to us: in private, by our name, or as an answer to us. */
  readonly isForUs: boolean;
  /** The platform's id of the message, to answer it and to mark it. */
  readonly messageId: string;
  /** Words of others that it answers or passes on. */
  readonly quoted?: { readonly by: string | null; readonly text: string; readonly isForwarded: boolean };
  readonly files?: readonly ChatFile[];
}

export interface ChatFile {
  /** How the channel finds it again. Not a secret, and not an address that anybody could open. */
  readonly ref: string;
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: number | null;
}

export interface Inbound {
  /** Where to go on from: what was handed to `take` last. Null at the very beginning. */
  readonly cursor: unknown;
  /**
   * Resolves when all of it is committed, with the cursor, in one transaction: only then may the platform be told that it has arrived.
   * Throws when it is not; then nothing is, or only the beginning, and taking it again does no harm.
   */
  take(messages: readonly ChatMessage[], cursor?: unknown): Promise<void>;
  /**
   * To be asked right before anything is sent that makes us the one who listens: a poll, a new connection. A process that was stopped goes on
   * as if no time had passed, while another has the account. No: nothing may be sent, and the signal has aborted.
   */
  stillOurs(): boolean;
  /** It works; `name`: what we are called there. */
  connected(name: string): void;
  /** It is cut off and tries again by itself. */
  disconnected(problem: string): void;
}

/** For what the platform posts: it has no place to go on from. */
export interface PostedInbound extends Pick<Inbound, "take"> {
  /** The run of a message that was taken, for whoever wants to follow it; null: nobody answers it. */
  runOf(messageId: string): Promise<string | null>;
}

/** `text`: as the platform takes it; `plain`: the same without any form, for when it does not. */
export interface Part {
  readonly text: string;
  readonly plain: string;
}

export interface OutboundFile {
  readonly name: string;
  readonly mediaType: string;
  readonly data: Uint8Array;
}

export interface Outbound {
  readonly place: ChatPlace;
  /** What is sent again because nobody knows whether it arrived has the same key. */
  readonly key: string;
  /** A part of the words, or a file. */
  readonly part: Part | null;
  readonly file?: OutboundFile;
  /** The message that it answers, where one sees that. */
  readonly answers: string | null;
}

/**
 * `later`: the platform has not taken it, and asks to wait or cannot be reached; `refused`: it never will; `unclear`: nobody knows.
 * `isWhole`: the same goes for everything that this account wants to send.
 */
export class SendTrouble extends Error {
  readonly kind: "later" | "refused" | "unclear";
  readonly afterMs: number | null;
  readonly isWhole: boolean;

  constructor(
    kind: "later" | "refused" | "unclear",
    message: string,
    options: { readonly afterMs?: number; readonly isWhole?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "SendTrouble";
    this.kind = kind;
    this.afterMs = options.afterMs ?? null;
    this.isWhole = options.isWhole ?? false;
  }
}

/** `refused`: the token or the rights are wrong, and only the operator can help; `cut off`: trying again may help. */
export class ChannelTrouble extends Error {
  readonly kind: "refused" | "cut off";
  /** The platform asks to wait this long. */
  readonly afterMs: number | null;

  constructor(kind: "refused" | "cut off", message: string, options: { readonly afterMs?: number; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "ChannelTrouble";
    this.kind = kind;
    this.afterMs = options.afterMs ?? null;
  }
}

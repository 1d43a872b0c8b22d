import type { SessionInfo } from "@discordjs/ws";
import { z } from "zod";

/** What is kept with the messages: after a restart Discord brings again whatever came after `sequence`. */
const cursor = z.object({ bot: z.string(), sessionId: z.string(), resumeURL: z.string(), sequence: z.int() });
export type SessionCursor = z.output<typeof cursor>;

/** One session at Discord, from one identification to its end. */
export interface Session {
  readonly sessionId: string;
  readonly resumeURL: string;
  /** Up to here everything was dealt with. */
  sequence: number;
  /** Up to here it is written down, and since when; `at` is null where nothing of this session is. */
  kept: { readonly sequence: number; readonly at: number | null };
}

/**
 * The session that we are in, and how far it is committed. The client counts what it has received; what counts here is what is written
 * down, also in heartbeats: they tell Discord what it may forget.
 */
export class ResumableSession {
  readonly #bot: string;
  readonly #front: string;
  #isByFront: boolean;
  #current: Session | null = null;

  /** `front`: where new sessions begin; `isByFront`: an old one is resumed there too, since its own address did not work. */
  constructor(kept: unknown, bot: string, front: string, isByFront: boolean) {
    this.#bot = bot;
    this.#front = front;
    this.#isByFront = isByFront;
    const known = cursor.safeParse(kept);
    // With another bot's token nobody can go on with the session of this one.
    if (known.success && known.data.bot === bot) {
      const { sessionId, resumeURL, sequence } = known.data;
      this.#current = { sessionId, resumeURL, sequence, kept: { sequence, at: 0 } };
    }
  }

  get current(): Session | null {
    return this.#current;
  }

  info(shardCount: number): SessionInfo | null {
    if (!this.#current) return null;
    const { sessionId, resumeURL, kept } = this.#current;
    const isUsable = !this.#isByFront && isSocketAddress(resumeURL);
    return { sessionId, resumeURL: isUsable ? resumeURL : this.#front, sequence: kept.sequence, shardId: 0, shardCount };
  }

  begin({ sessionId, resumeURL, sequence }: SessionInfo): void {
    if (this.#current?.sessionId === sessionId) return;
    this.#isByFront = false;
    this.#current = { sessionId, resumeURL, sequence, kept: { sequence, at: null } };
  }

  forget(): void {
    this.#current = null;
  }

  cursorAt({ sessionId, resumeURL }: Session, sequence: number): SessionCursor {
    return { bot: this.#bot, sessionId, resumeURL, sequence };
  }
}

/** The client ends with an error that nobody catches when it is told to connect to something else. */
export function isSocketAddress(text: string): boolean {
  return /^wss?:/.test(text) && URL.canParse(text);
}

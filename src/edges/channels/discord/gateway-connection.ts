import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { GatewayCloseCodes, GatewayDispatchEvents, type GatewayDispatchPayload } from "@discordjs/core/http-only";
import { CloseCodes, WebSocketShardEvents as Events, type SessionInfo, type WebSocketManager } from "@discordjs/ws";
import { ChannelTrouble, type ChatMessage, type Inbound } from "../../../kernel/channel.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { messageOf } from "../../../kernel/failure.ts";
import type { Log } from "../../../kernel/log.ts";
import { channelTrouble, type DiscordApi, TOKEN_REFUSED } from "./discord-api.ts";
import type { Places } from "./places.ts";
import { readMessage } from "./read-message.ts";
import type { ResumableSession, Session } from "./resumable-session.ts";

export interface GatewayParts {
  readonly api: DiscordApi;
  readonly places: Places;
  readonly log: Log;
  readonly clock: Clock;
  /** Of the account, for the log. */
  readonly name: string;
}

interface ConnectionParts extends GatewayParts {
  readonly manager: WebSocketManager;
  readonly session: ResumableSession;
  readonly inbound: Inbound;
  readonly bot: { readonly id: string; readonly name: string };
}

interface Arrival {
  readonly session: Session;
  readonly payload: GatewayDispatchPayload;
}

/** The client reconnects at once and without end; after so many failures in a row, or so long, whoever holds us takes more time. */
const MAX_CLOSES = 3;
const GIVE_UP_MS = 30_000;
const MAX_BATCH = 100;
/** How far we are is written down with every message, and this often where there is none. */
const KEEP_EVERY_MS = 5_000;
const CLOSING_MS = 1_000;

const REFUSALS: Readonly<Record<number, string>> = {
  [GatewayCloseCodes.AuthenticationFailed]: TOKEN_REFUSED,
  [GatewayCloseCodes.InvalidShard]: "Discord does not accept our part of the bot's servers",
  [GatewayCloseCodes.ShardingRequired]: "the bot is in too many servers for one connection: take it out of some of them",
  [GatewayCloseCodes.InvalidAPIVersion]: "Discord does not speak this version of its API any more: update Guildhall",
  [GatewayCloseCodes.InvalidIntents]: "Discord does not know what we ask for: update Guildhall",
  [GatewayCloseCodes.DisallowedIntents]:
    "the bot may not read messages: switch on “Message Content Intent” in the developer portal (Bot, Privileged Gateway Intents)",
};
/** The session is over for Discord, and cannot be resumed. */
const SESSION_OVER: ReadonlySet<number> = new Set([GatewayCloseCodes.InvalidSeq, GatewayCloseCodes.SessionTimedOut]);

/**
 * From the first connection until it is told to end, refused, or cut off for long. Short cuts are the client's: it resumes from where we
 * are, and what was received but not committed comes again.
 */
export class GatewayConnection {
  readonly #parts: ConnectionParts;
  readonly #end = Promise.withResolvers<void>();
  #arrivals: Arrival[] = [];
  #storing: Promise<void> | undefined;
  /** Greeted by the server that we are connected to now. */
  #isGreeted = false;
  #isOver = false;
  #closes = 0;
  #problem: string | undefined;
  #giveUp: NodeJS.Timeout | undefined;
  /** It was ready at least once. */
  hasWorked = false;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    const { manager } = parts;
    manager.on(Events.Hello, () => this.#greeted());
    manager.on(Events.Ready, () => this.#works());
    manager.on(Events.Resumed, () => this.#works());
    manager.on(Events.Dispatch, (payload) => this.#arrived(payload));
    manager.on(Events.Closed, (code) => this.#closed(code));
    manager.on(Events.SocketError, (error) => {
      this.#problem = error.message;
    });
    // Why is said when it closes; without a listener it would end the process.
    manager.on(Events.Error, (error) => parts.log.debug?.("the gateway of Discord has a problem", { error: error.message }));
  }

  async untilOver(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.#end.resolve();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    this.#expectReady();
    this.#parts.manager.connect().catch((error: unknown) => this.#end.reject(channelTrouble(error)));
    try {
      await this.#end.promise;
    } finally {
      this.#isOver = true;
      signal.removeEventListener("abort", stop);
      clearTimeout(this.#giveUp);
      await Promise.race([this.#leave(), sleep(CLOSING_MS, undefined, { ref: false })]);
      await this.#storing;
    }
  }

  /**
   * For the client, which asks before every connection. When we are over, or another has the account, it never learns how to connect: it would
   * otherwise do so again, whatever it was told.
   */
  sessionInfo(shards: number): SessionInfo | null | Promise<never> {
    return this.#isOver || !this.#parts.inbound.stillOurs() ? new Promise<never>(() => {}) : this.#parts.session.info(shards);
  }

  /**
   * For the client. It gives a session up whenever a connection fails, which would lose what is said meanwhile: only where the server has
   * greeted us and has not closed since is it the server that does not know the session.
   */
  keepSession(info: SessionInfo | null): void {
    if (this.#isOver) return;
    if (info) this.#parts.session.begin(info);
    else if (this.#isGreeted) this.#lostSession();
  }

  #lostSession(): void {
    const { session, inbound, log, name } = this.#parts;
    if (!session.current) return;
    session.forget();
    const problem = "Discord could not go on with the last session: messages of the time without a connection may be missing";
    log.warn(problem, { account: name });
    inbound.disconnected(problem);
  }

  #greeted(): void {
    this.#isGreeted = true;
    if (this.#isOver) void this.#leave();
  }

  #works(): void {
    if (this.#isOver) return;
    clearTimeout(this.#giveUp);
    this.hasWorked = true;
    this.#closes = 0;
    this.#problem = undefined;
    this.#parts.inbound.connected(this.#parts.bot.name);
  }

  #closed(code: number): void {
    this.#isGreeted = false;
    if (this.#isOver) return;
    const refusal = REFUSALS[code];
    if (refusal !== undefined) this.#end.reject(new ChannelTrouble("refused", refusal));
    if (refusal !== undefined) return;
    if (SESSION_OVER.has(code)) this.#lostSession();
    this.#expectReady();
    // Discord asks for it now and then, or the client does it because nothing comes: nobody has to know.
    if (code === CloseCodes.Resuming) return;
    const problem = `the connection to Discord is cut (${this.#problem ?? `code ${code}`})`;
    this.#closes++;
    if (this.#closes >= MAX_CLOSES) this.#end.reject(new ChannelTrouble("cut off", problem));
    else this.#parts.inbound.disconnected(problem);
  }

  #expectReady(): void {
    clearTimeout(this.#giveUp);
    const problem = "Discord does not let us in, and says nothing";
    this.#giveUp = setTimeout(() => this.#end.reject(new ChannelTrouble("cut off", problem)), GIVE_UP_MS);
  }

  /** With a code of its own the session can be resumed, also by whoever connects next. */
  async #leave(): Promise<void> {
    // In the middle of connecting the client leaves its socket open and unguarded: then it is left when it is greeted.
    if (!this.#isGreeted) return;
    await this.#parts.manager.destroy({ code: CloseCodes.Resuming, reason: "going" });
  }

  #arrived(payload: GatewayDispatchPayload): void {
    const session = this.#parts.session.current;
    if (!session || this.#isOver) return;
    this.#arrivals.push({ session, payload });
    this.#storing ??= this.#store()
      .catch((error: unknown) => this.#end.reject(error))
      .finally(() => {
        this.#storing = undefined;
      });
  }

  async #store(): Promise<void> {
    while (this.#arrivals.length > 0 && !this.#isOver) {
      // Two that came together may overtake each other in the client, within one turn of the loop.
      await nextTurn();
      const [first] = this.#arrivals;
      if (!first) return;
      const batch = this.#arrivals
        .filter(({ session }) => session === first.session)
        .sort((one, other) => one.payload.s - other.payload.s)
        .slice(0, MAX_BATCH);
      await this.#commit(first.session, batch);
      const taken = new Set(batch);
      this.#arrivals = this.#arrivals.filter((arrival) => !taken.has(arrival));
    }
  }

  async #commit(session: Session, batch: readonly Arrival[]): Promise<void> {
    const { inbound, clock, session: sessions } = this.#parts;
    const messages: ChatMessage[] = [];
    let { sequence } = session;
    for (const { payload } of batch) {
      // It came again, because it had not been committed when the connection was cut.
      if (payload.s <= sequence) continue;
      const message = await this.#read(payload);
      if (message) messages.push(message);
      sequence = payload.s;
    }
    const { at } = session.kept;
    const isDue = at === null || clock.now() - at >= KEEP_EVERY_MS;
    if (messages.length > 0 || isDue) {
      await inbound.take(messages, sessions.cursorAt(session, sequence));
      session.kept = { sequence, at: clock.now() };
    }
    session.sequence = sequence;
  }

  async #read({ t, d }: GatewayDispatchPayload): Promise<ChatMessage | undefined> {
    const { places, bot, log, name } = this.#parts;
    try {
      if (t === GatewayDispatchEvents.GuildCreate) places.learn(d);
      if (t === GatewayDispatchEvents.MessageCreate) return await readMessage(d, bot.id, places);
    } catch (error) {
      if (error instanceof ChannelTrouble) throw error;
      // It would come again and again, and nothing after it.
      log.warn("something that Discord says cannot be read", { account: name, type: t, problem: messageOf(error) });
    }
    return undefined;
  }
}

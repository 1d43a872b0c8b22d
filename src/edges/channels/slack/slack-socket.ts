import { setTimeout as sleep } from "node:timers/promises";
import type { WebClientOptions } from "@slack/web-api";
import type { Secret } from "../../../contract/secret.ts";
import { ChannelTrouble, type ChatMessage, type Inbound } from "../../../kernel/channel.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { type Ending, type Envelope, SlackConnection } from "./slack-connection.ts";

/** As many as are committed together. */
const MAX_AT_ONCE = 50;
/** A connection that has not even lasted so long is not followed by another at once: whoever holds us waits longer each time. */
const SHORT_LIVED_MS = 2_000;
/** As long as Slack serves a connection that it wants to end, and somewhat less. */
const FAREWELL_MS = 5_000;

export interface SocketParts {
  readonly appToken: Secret;
  readonly options: WebClientOptions;
  readonly name: string;
  readonly clock: Clock;
  messageIn(payload: unknown): Promise<ChatMessage | null>;
}

/**
 * Listens by socket mode. When Slack wants a connection to end, the next one is there before it is left, and what has come by the old one
 * is acknowledged on it. Whatever is not acknowledged, Slack sends again.
 */
export async function listenBySocket(parts: SocketParts, inbound: Inbound, signal: AbortSignal): Promise<void> {
  const { appToken, options, name, clock } = parts;
  const desk = new EnvelopeDesk(inbound, parts.messageIn);
  const open = new Set<SlackConnection>();
  const connect = async (): Promise<SlackConnection> => {
    refuseWhatIsNotOurs(inbound);
    const connection = await SlackConnection.open(appToken.reveal(), options, (envelope) => desk.put(envelope), signal);
    open.add(connection);
    // It may have taken long to come about.
    refuseWhatIsNotOurs(inbound);
    return connection;
  };
  const leave = async (connection: SlackConnection): Promise<void> => {
    await Promise.race([desk.idle(), sleep(FAREWELL_MS, undefined, { ref: false })]);
    await connection.close();
    open.delete(connection);
  };
  const aborted = Promise.withResolvers<"aborted">();
  const abort = (): void => aborted.resolve("aborted");
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    let connection = await connect();
    for (;;) {
      inbound.connected(name);
      const since = clock.now();
      const ending = await Promise.race([connection.ending, desk.failed, aborted.promise]);
      if (ending === "aborted") return;
      refuseToGoOn(ending, clock.now() - since);
      const old = connection;
      connection = await connect();
      void leave(old);
    }
  } finally {
    signal.removeEventListener("abort", abort);
    await Promise.all([...open].map((connection) => connection.close()));
  }
}

/** Slack would hand half of what is said to a connection that may not take it. */
function refuseWhatIsNotOurs(inbound: Inbound): void {
  if (!inbound.stillOurs()) throw new ChannelTrouble("cut off", "another node has the account by now");
}

function refuseToGoOn(ending: Ending, livedMs: number): void {
  const reason = ending.kind === "told" ? ending.reason : "it was cut";
  if (reason === "link_disabled")
    throw new ChannelTrouble("refused", "socket mode is switched off; switch it on in the app's settings at Slack");
  if (reason === "too_many_websockets")
    throw new ChannelTrouble("cut off", "Slack has too many connections of this app; is it used elsewhere?");
  if (livedMs < SHORT_LIVED_MS) throw new ChannelTrouble("cut off", `Slack has ended the connection at once: ${reason}`);
}

/** Takes what comes in its order, as much as there is at a time, and acknowledges what was committed. */
class EnvelopeDesk {
  readonly #inbound: Pick<Inbound, "take">;
  readonly #messageIn: (payload: unknown) => Promise<ChatMessage | null>;
  readonly #waiting: Envelope[] = [];
  readonly #failed = Promise.withResolvers<never>();
  #work: Promise<void> | undefined;

  constructor(inbound: Pick<Inbound, "take">, messageIn: (payload: unknown) => Promise<ChatMessage | null>) {
    this.#inbound = inbound;
    this.#messageIn = messageIn;
    this.#failed.promise.catch(() => {});
  }

  /** Rejects when something could not be committed: it and all behind it stay with Slack. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  async idle(): Promise<void> {
    await this.#work;
  }

  put(envelope: Envelope): void {
    this.#waiting.push(envelope);
    this.#work ??= this.#takeAll().catch((error: unknown) => this.#failed.reject(error));
  }

  /** After a failure it is never idle again, so that nothing overtakes what was not committed. */
  async #takeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const envelopes = this.#waiting.splice(0, MAX_AT_ONCE);
      const messages = await Promise.all(envelopes.map(({ type, body }) => (type === "events_api" ? this.#messageIn(body) : null)));
      const said = messages.filter((message) => message !== null);
      if (said.length > 0) await this.#inbound.take(said);
      // One whose connection has ended meanwhile comes again by another, and is known then.
      await Promise.all(envelopes.map((envelope) => envelope.ack().catch(() => {})));
    }
    this.#work = undefined;
  }
}

import { SocketModeClient } from "@slack/socket-mode";
import type { WebClientOptions } from "@slack/web-api";
import { ChannelTrouble } from "../../../kernel/channel.ts";
import { firstOf } from "../../../kernel/first-of.ts";
import { SILENT } from "./slack-api.ts";
import { channelTroubleOf } from "./slack-trouble.ts";

const OPEN_MS = 20_000;
const CLOSE_MS = 1_000;

/** What Slack hands over. It comes again, here or on another connection, until `ack` was called. */
export interface Envelope {
  readonly type: string;
  readonly body: unknown;
  ack(): Promise<void>;
}

/** `told`: Slack has asked us to leave, and serves us for some seconds more; `lost`: it is gone. */
export type Ending = { readonly kind: "told"; readonly reason: string } | { readonly kind: "lost" };

/** One connection of socket mode, from its beginning to its end. The client's own way of connecting again waits for seconds in between. */
export class SlackConnection extends SocketModeClient {
  readonly ending: Promise<Ending>;
  readonly #end: (ending: Ending) => void;

  private constructor(appToken: string, clientOptions: WebClientOptions, take: (envelope: Envelope) => void) {
    super({ appToken, clientOptions, logger: SILENT, autoReconnectEnabled: false });
    const { promise, resolve } = Promise.withResolvers<Ending>();
    this.ending = promise;
    this.#end = resolve;
    this.on("slack_event", take);
    this.on("disconnected", () => resolve({ kind: "lost" }));
  }

  /** Once Slack has said hello. */
  static async open(
    appToken: string,
    clientOptions: WebClientOptions,
    take: (envelope: Envelope) => void,
    signal: AbortSignal,
  ): Promise<SlackConnection> {
    const connection = new SlackConnection(appToken, clientOptions, take);
    const ending = firstOf([signal], OPEN_MS);
    const late = new Promise<never>((_, reject) => {
      const give = (): void => reject(new ChannelTrouble("cut off", "Slack has opened no connection in time"));
      if (ending.signal.aborted) give();
      ending.signal.addEventListener("abort", give, { once: true });
    });
    const started = connection.start();
    try {
      await Promise.race([started, late]);
      return connection;
    } catch (error) {
      // It may still come about after nobody has waited any longer.
      void connection.close();
      started.then(
        () => connection.close(),
        () => {},
      );
      if (error === undefined) throw new ChannelTrouble("cut off", "the connection that Slack has offered cannot be opened");
      throw channelTroubleOf(error, "app_token");
    } finally {
      ending.over();
    }
  }

  async close(): Promise<void> {
    const closed = this.disconnect();
    const ending = firstOf([], CLOSE_MS);
    const tired = new Promise<void>((resolve) => ending.signal.addEventListener("abort", () => resolve(), { once: true }));
    await Promise.race([closed.finally(() => ending.over()), tired]);
    // The second time it does not wait for the other side.
    if (ending.isTimeUp()) this.websocket?.disconnect();
  }

  /** The client would leave at once; but what comes before there is another connection would have to wait. */
  protected override async onWebSocketMessage(data: string | ArrayBuffer, isBinary: boolean): Promise<void> {
    const reason = typeof data === "string" ? reasonToLeave(data) : undefined;
    if (reason !== undefined) return this.#end({ kind: "told", reason });
    // The client falls over what is not quite an envelope, and nobody waits for it here.
    await super.onWebSocketMessage(data, isBinary).catch(() => {});
  }
}

function reasonToLeave(frame: string): string | undefined {
  if (!frame.includes('"disconnect"')) return undefined;
  try {
    const told = JSON.parse(frame) as { type?: unknown; reason?: unknown } | null;
    return told?.type === "disconnect" ? String(told.reason) : undefined;
  } catch {
    return undefined;
  }
}

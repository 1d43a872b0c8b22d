import { GatewayIntentBits } from "@discordjs/core/http-only";
import { WebSocketManager } from "@discordjs/ws";
import { ChannelTrouble, type Inbound } from "../../../kernel/channel.ts";
import { channelTrouble } from "./discord-api.ts";
import { GatewayConnection, type GatewayParts } from "./gateway-connection.ts";
import { isSocketAddress, ResumableSession } from "./resumable-session.ts";

const INTENTS =
  GatewayIntentBits.Guilds | GatewayIntentBits.GuildMessages | GatewayIntentBits.DirectMessages | GatewayIntentBits.MessageContent;
/** One connection serves as many servers as a bot of one house is in; Discord refuses it from 2,500 on. */
const SHARDS = 1;
const HANDSHAKE_MS = 10_000;
const HELLO_MS = 15_000;

/** Discord's socket, on which everything that is said comes in. */
export class Gateway {
  readonly #parts: GatewayParts;
  /** The address to resume at did not work: the next attempt is made at the front door, where a session can be resumed as well. */
  #isByFront = false;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
  }

  async listen(inbound: Inbound, signal: AbortSignal): Promise<void> {
    const { api } = this.#parts;
    const { id, username } = await this.#ask(() => api.ready.users.getCurrent({ signal }));
    const manager = new WebSocketManager({
      token: api.token,
      rest: api.rest,
      intents: INTENTS,
      shardCount: SHARDS,
      handshakeTimeout: HANDSHAKE_MS,
      helloTimeout: HELLO_MS,
      retrieveSessionInfo: () => connection.sessionInfo(SHARDS),
      updateSessionInfo: (_shard, info) => connection.keepSession(info),
    });
    const { url, session_start_limit: limit } = await this.#ask(() => manager.fetchGatewayInformation());
    if (!isSocketAddress(url))
      throw new ChannelTrouble("cut off", "Discord names no address of its gateway: is api_url that of Discord's API?");
    if (limit.remaining < SHARDS)
      throw new ChannelTrouble("cut off", "Discord allows no more connections today", { afterMs: limit.reset_after });
    const session = new ResumableSession(inbound.cursor, id, url, this.#isByFront);
    const connection = new GatewayConnection({ ...this.#parts, manager, session, inbound, bot: { id, name: username } });
    try {
      await connection.untilOver(signal);
    } finally {
      this.#isByFront = !connection.hasWorked && !this.#isByFront;
    }
  }

  async #ask<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw channelTrouble(error);
    }
  }
}

import { ChannelType, type GatewayGuildCreateDispatchData } from "@discordjs/core/http-only";
import type { ChatPlace } from "../../../kernel/channel.ts";
import { channelTrouble, type DiscordApi, isGone } from "./discord-api.ts";

const KNOWN_PLACES = 10_000;
const KNOWN_GUILDS = 1_000;
const THREADS: ReadonlySet<ChannelType> = new Set([ChannelType.AnnouncementThread, ChannelType.PublicThread, ChannelType.PrivateThread]);

interface Seen {
  readonly channelId: string;
  readonly guildId: string | undefined;
  readonly channelType: ChannelType | undefined;
}

/**
 * Where a channel of Discord is in the house's terms: a thread (a post in a forum is one) is a topic of the channel that it hangs on.
 * A message does not say what it hangs on, and after a restart nobody tells: what is not known is asked for. It never changes.
 */
export class Places {
  readonly #api: DiscordApi;
  /** By the id of a channel: what it hangs on, if it is a thread. */
  readonly #parents = new Map<string, string | null>();
  readonly #ownRoles = new Map<string, readonly string[]>();

  constructor(api: DiscordApi) {
    this.#api = api;
  }

  /** What a guild tells of itself when a new session begins. */
  learn(guild: GatewayGuildCreateDispatchData): void {
    if (guild.unavailable) return;
    for (const { id } of guild.channels) this.#know(id, null);
    for (const thread of guild.threads) this.#know(thread.id, thread.parent_id ?? null);
  }

  /** Undefined: it is gone, and nobody can answer there. */
  async placeOf({ channelId, guildId, channelType }: Seen): Promise<ChatPlace | undefined> {
    if (guildId === undefined)
      return { guild: null, chat: channelId, topic: null, chatType: channelType === ChannelType.GroupDM ? "group" : "dm" };
    if (channelType !== undefined && !THREADS.has(channelType))
      return { guild: guildId, chat: channelId, topic: null, chatType: "channel" };
    const parent = await this.#parentOf(channelId);
    if (parent === undefined) return undefined;
    return parent === null
      ? { guild: guildId, chat: channelId, topic: null, chatType: "channel" }
      : { guild: guildId, chat: parent, topic: channelId, chatType: "channel" };
  }

  /** The roles that are the bot itself: people who call it choose one of them by mistake. */
  async ownRolesIn(guildId: string, botId: string): Promise<readonly string[]> {
    const known = this.#ownRoles.get(guildId);
    if (known) return known;
    try {
      const roles = await this.#api.ready.guilds.getRoles(guildId);
      const own = roles.filter(({ tags }) => tags?.bot_id === botId).map(({ id }) => id);
      remember(this.#ownRoles, guildId, own, KNOWN_GUILDS);
      return own;
    } catch (error) {
      if (isGone(error)) return [];
      throw channelTrouble(error);
    }
  }

  async #parentOf(channelId: string): Promise<string | null | undefined> {
    const known = this.#parents.get(channelId);
    if (known !== undefined) return known;
    try {
      const channel = await this.#api.ready.channels.get(channelId);
      const parent = THREADS.has(channel.type) && "parent_id" in channel ? (channel.parent_id ?? null) : null;
      this.#know(channelId, parent);
      return parent;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw channelTrouble(error);
    }
  }

  #know(channelId: string, parent: string | null): void {
    remember(this.#parents, channelId, parent, KNOWN_PLACES);
  }
}

function remember<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value as string);
}

/** Where to write so that it stands in this place. */
export function channelIdOf({ chat, topic }: ChatPlace): string {
  return topic ?? chat;
}

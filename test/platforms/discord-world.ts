/** What Discord keeps: people, channels and messages, as its API shows them. */
export interface WorldMessage {
  readonly id: string;
  readonly channelId: string;
  readonly author: { readonly id: string; readonly name: string; readonly isBot: boolean };
  content: string;
  readonly attachments: readonly { readonly id: string; readonly name: string; readonly mediaType: string; readonly data: Uint8Array }[];
  readonly answers: string | null;
  readonly forwarded: { readonly content: string; readonly channelId: string } | null;
  readonly reactions: Map<string, Set<string>>;
  readonly nonce: string | null;
  readonly roles: readonly string[];
  readonly webhookId: string | null;
  readonly type: number;
  edits: number;
}

export interface WorldChannel {
  readonly id: string;
  readonly type: number;
  readonly guildId: string | null;
  readonly parentId: string | null;
  /** In private: with whom. */
  readonly peer: string | null;
  readonly messages: Map<string, WorldMessage>;
}

export const TEXT = 0;
export const DM = 1;
export const THREAD = 11;
export const FORUM = 15;
const EPOCH = 1_420_070_400_000n;

export class DiscordWorld {
  readonly bot = { id: "100000000000000001", name: "guildhall-bot" };
  readonly guild = "300000000000000001";
  /** The role that is the bot itself, and one of people. */
  readonly botRole = "400000000000000001";
  readonly channels = new Map<string, WorldChannel>();
  readonly #linkMs: () => number;
  #count = 0n;
  /** Links that were given before count as expired. */
  epoch = 0;

  constructor(linkMs: () => number) {
    this.#linkMs = linkMs;
  }

  newId(): string {
    this.#count += 1n;
    return (((BigInt(Date.now()) - EPOCH) << 22n) + this.#count).toString();
  }

  dm(peer: string): WorldChannel {
    const known = [...this.channels.values()].find((channel) => channel.peer === peer);
    return known ?? this.add({ id: (600_000_000_000_000_000n + BigInt(this.channels.size)).toString(), type: DM, guildId: null, peer });
  }

  add(channel: Partial<WorldChannel> & { readonly id: string; readonly type: number }): WorldChannel {
    const known = this.channels.get(channel.id);
    if (known) return known;
    const added: WorldChannel = { guildId: this.guild, parentId: null, peer: null, messages: new Map(), ...channel };
    this.channels.set(added.id, added);
    return added;
  }

  find(messageId: string): WorldMessage | undefined {
    for (const { messages } of this.channels.values()) if (messages.has(messageId)) return messages.get(messageId);
    return undefined;
  }

  /** By what a test calls it: in private, the person. */
  chatOf({ id, parentId, peer }: WorldChannel): { chat: string; topic: string | null } {
    return parentId === null ? { chat: peer ?? id, topic: null } : { chat: parentId, topic: id };
  }

  channelJson({ id, type, guildId, parentId }: WorldChannel): Record<string, unknown> {
    return { id, type, ...(guildId === null ? {} : { guild_id: guildId }), ...(parentId === null ? {} : { parent_id: parentId }) };
  }

  userJson({ id, name, isBot }: WorldMessage["author"]): Record<string, unknown> {
    return { id, username: name.toLowerCase(), global_name: name, discriminator: "0", avatar: null, bot: isBot };
  }

  /** As the API shows it; `withContent`: whether whoever asks may read it. */
  messageJson(message: WorldMessage, withContent: boolean, base: string, isNested = false): Record<string, unknown> {
    const channel = this.channels.get(message.channelId) as WorldChannel;
    const mentions = [...message.content.matchAll(/<@!?(\d+)>/g)].map(([, id]) => ({
      id,
      username: `user ${id}`,
      bot: id === this.bot.id,
    }));
    const answered = message.answers === null ? undefined : this.find(message.answers);
    const attachments = withContent ? message.attachments.map((attachment) => this.#attachmentJson(message, attachment, base)) : [];
    const nothing = { mentions: [], mention_roles: [], mention_everyone: false, embeds: [], tts: false, pinned: false };
    const shown = {
      ...nothing,
      id: message.id,
      type: message.type,
      channel_id: message.channelId,
      author: this.userJson(message.author),
      content: withContent ? message.content : "",
      timestamp: new Date().toISOString(),
      edited_timestamp: message.edits > 0 ? new Date().toISOString() : null,
      mentions,
      mention_roles: [...message.content.matchAll(/<@&(\d+)>/g)].map(([, id]) => id),
      attachments: message.forwarded ? [] : attachments,
      ...(message.nonce === null ? {} : { nonce: message.nonce }),
      ...(message.webhookId === null ? {} : { webhook_id: message.webhookId }),
    };
    if (message.forwarded) {
      const { content, channelId } = message.forwarded;
      const copy = { type: 0, content: withContent ? content : "", attachments, embeds: [], timestamp: shown.timestamp, mentions: [] };
      return {
        ...shown,
        message_reference: { type: 1, channel_id: channelId, message_id: this.newId() },
        message_snapshots: [{ message: copy }],
      };
    }
    if (message.answers === null || isNested) return shown;
    const reference = { type: 0, channel_id: message.channelId, message_id: message.answers, guild_id: channel.guildId ?? undefined };
    const whole = answered ? this.messageJson(answered, withContent, base, true) : null;
    return { ...shown, message_reference: reference, referenced_message: whole };
  }

  #attachmentJson(
    { channelId }: WorldMessage,
    { id, name, mediaType, data }: WorldMessage["attachments"][number],
    base: string,
  ): Record<string, unknown> {
    const expires = Math.ceil((Date.now() + this.#linkMs()) / 1_000).toString(16);
    const url = `${base}/attachments/${channelId}/${id}/${encodeURIComponent(name)}?ex=${expires}&hm=${this.epoch}`;
    return { id, filename: name, content_type: mediaType, size: data.byteLength, url, proxy_url: url };
  }
}

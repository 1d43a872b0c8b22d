import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { DiscordGateway } from "./discord-gateway.ts";
import { DiscordRest } from "./discord-rest.ts";
import { DiscordWorld, FORUM, TEXT, THREAD, type WorldChannel, type WorldMessage } from "./discord-world.ts";
import type { Saying, Shown, StandIn, Trouble } from "./stand-in.ts";

export interface DiscordSaying extends Saying {
  /** Of the member who says it. */
  readonly roles?: readonly string[];
  readonly by?: "person" | "bot" | "webhook" | "the platform";
  /** Calls the role that is the bot, as people do by mistake. */
  readonly callsRole?: boolean;
  /** The channel that the thread hangs on is a forum. */
  readonly isForum?: boolean;
}

const TOKEN = "MTAw.stand-in.of-discord";
const LINK_MS = 24 * 60 * 60_000;

/** Discord on this machine. */
export async function discordStandIn(): Promise<DiscordStandIn> {
  const server = createServer();
  const standIn = new DiscordStandIn(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  standIn.opened(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return standIn;
}

export class DiscordStandIn implements StandIn {
  readonly platform = "discord";
  readonly world = new DiscordWorld(() => LINK_MS);
  readonly gateway: DiscordGateway;
  readonly rest: DiscordRest;
  readonly accepted: Shown[] = [];
  readonly complaints: string[] = [];
  readonly #server: Server;
  #base = "";
  #troubles: { readonly kind: Trouble; times: number; readonly chat: string | undefined }[] = [];

  constructor(server: Server) {
    this.#server = server;
    const complain = (words: string): void => void this.complaints.push(words);
    const token = (): string => (this.#troubles.some(({ kind }) => kind === "bad token") ? "another" : TOKEN);
    this.gateway = new DiscordGateway(server, { token, complain, bot: this.world.bot, guilds: () => [this.#guildJson()] });
    this.rest = new DiscordRest({
      world: this.world,
      token,
      complain,
      base: () => this.#base,
      gatewayUrl: () => this.gateway.url,
      troubleFor: (chat) => this.#troubleFor(chat),
      accepted: (message) => this.accepted.push(this.#shownOf(message)),
    });
    server.on("request", (request, response) => void this.rest.handle(request, response));
  }

  opened(base: string): void {
    this.#base = base;
    this.gateway.base = base;
  }

  get account(): Readonly<Record<string, unknown>> {
    return { token: TOKEN, api_url: `${this.#base}/api` };
  }

  get botId(): string {
    return this.world.bot.id;
  }

  attach(): void {}

  async say(text: string, how: DiscordSaying = {}): Promise<string> {
    const channel = this.#channelOf(how);
    const author = { id: how.peer ?? "7", name: how.name ?? "Ada", isBot: how.by === "bot" };
    const calls = [how.mentions ? `<@${this.botId}> ` : "", how.callsRole ? `<@&${this.world.botRole}> ` : ""].join("");
    const answers =
      how.quotes && !how.quotes.forwarded ? this.#add(channel, { id: "8", name: "Eve", isBot: false }, how.quotes.text).id : null;
    const message = this.#add(channel, author, calls + text, {
      attachments: (how.files ?? []).map((file) => ({ id: this.world.newId(), ...file })),
      answers: how.answers ?? answers,
      forwarded: how.quotes?.forwarded ? { content: how.quotes.text, channelId: this.world.newId() } : null,
      roles: how.roles ?? [],
      webhookId: how.by === "webhook" ? this.world.newId() : null,
      type: how.by === "the platform" ? 7 : (how.answers ?? answers) === null ? 0 : 19,
    });
    this.gateway.dispatch("MESSAGE_CREATE", channel.guildId === null, (canRead) => ({
      // In private, and where it is called, a bot may read without asking for it.
      ...this.world.messageJson(message, canRead || channel.guildId === null || message.content.includes(`<@${this.botId}>`), this.#base),
      ...(channel.guildId === null ? {} : { guild_id: channel.guildId, member: { roles: how.roles ?? [], nick: null } }),
    }));
    return message.id;
  }

  shown(chat: string, topic?: string): readonly Shown[] {
    return [...this.world.channels.values()]
      .flatMap(({ messages }) => [...messages.values()])
      .filter(({ author }) => author.id === this.botId)
      .map((message) => this.#shownOf(message))
      .filter((shown) => shown.chat === chat && shown.topic === (topic ?? null));
  }

  /** What stands under a message: the bot's marks. */
  marksOn(messageId: string): readonly string[] {
    const { reactions } = this.world.find(messageId) as WorldMessage;
    return [...reactions].filter(([, by]) => by.has(this.botId)).map(([emoji]) => emoji);
  }

  trouble(kind: Trouble, times = 1, chat?: string): void {
    if (kind === "none") this.#troubles = [];
    else this.#troubles.push({ kind, times, chat });
  }

  /** Links that were given until now do not work any more. */
  expireLinks(): void {
    this.world.epoch++;
  }

  async close(): Promise<void> {
    this.gateway.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #troubleFor(chat: string): Trouble {
    const found = this.#troubles.find(({ kind, times, chat: only }) => kind !== "bad token" && times > 0 && (only ?? chat) === chat);
    if (!found) return "none";
    found.times--;
    return found.kind;
  }

  #channelOf({ peer = "7", group, topic, isForum }: DiscordSaying): WorldChannel {
    if (group === undefined) return this.world.dm(peer);
    const channel = this.world.add({ id: group, type: isForum ? FORUM : TEXT });
    return topic === undefined ? channel : this.world.add({ id: topic, type: THREAD, parentId: group });
  }

  #add(channel: WorldChannel, author: WorldMessage["author"], content: string, more: Partial<WorldMessage> = {}): WorldMessage {
    const message: WorldMessage = {
      id: this.world.newId(),
      channelId: channel.id,
      author,
      content,
      attachments: [],
      answers: null,
      forwarded: null,
      reactions: new Map(),
      nonce: null,
      roles: [],
      webhookId: null,
      type: 0,
      edits: 0,
      ...more,
    };
    channel.messages.set(message.id, message);
    return message;
  }

  #guildJson(): { readonly id: string } & Record<string, unknown> {
    const channels = [...this.world.channels.values()].filter(({ guildId }) => guildId !== null);
    return {
      id: this.world.guild,
      name: "a guild",
      channels: channels.filter(({ type }) => type !== THREAD).map((channel) => this.world.channelJson(channel)),
      threads: channels.filter(({ type }) => type === THREAD).map((channel) => this.world.channelJson(channel)),
      roles: [],
      members: [],
    };
  }

  #shownOf({ id, channelId, content, answers, attachments, edits }: WorldMessage): Shown {
    const { chat, topic } = this.world.chatOf(this.world.channels.get(channelId) as WorldChannel);
    const [file] = attachments;
    return {
      id,
      chat,
      topic,
      text: plainOf(content),
      raw: content,
      answers,
      file: file ? { name: file.name, data: file.data } : null,
      edits,
    };
  }
}

/** As a person reads it. Inside of code nothing is markup. */
function plainOf(content: string): string {
  return content
    .split(/(```[\s\S]*?```|`[^`\n]+`)/)
    .map((piece) => {
      if (piece.startsWith("```")) return piece.replace(/^```[\w+-]*\n?/, "").replace(/\n?```$/, "");
      if (piece.startsWith("`")) return piece.slice(1, -1);
      return piece
        .replace(/\*\*([\s\S]+?)\*\*/g, "$1")
        .replace(/__([\s\S]+?)__/g, "$1")
        .replace(/~~([\s\S]+?)~~/g, "$1")
        .replace(/(?<![\w*])\*([^*\n]+)\*(?![\w*])/g, "$1")
        .replace(/^#{1,3} /gm, "")
        .replace(/\\([*_~`#>|\\])/g, "$1");
    })
    .join("");
}

import type { Channel, ChatMessage, Inbound, Outbound } from "../src/kernel/channel.ts";
import type { ChannelPlugin } from "../src/library/index.ts";

/** A platform of a test's own, by the port that anybody may use: it says what it is told to say, and keeps what it is sent. */
export class PlainPlatform {
  readonly sent: Outbound[] = [];
  /** What can be downloaded, by its `ref`. */
  readonly files = new Map<string, Uint8Array>();
  readonly downloads: string[] = [];
  #listening = Promise.withResolvers<Inbound>();

  plugin(platform = "plain"): ChannelPlugin {
    return { platform, open: async () => this.#channel() };
  }

  get listening(): Promise<Inbound> {
    return this.#listening.promise;
  }

  #channel(): Channel {
    return {
      abilities: { dedupes: false, reacts: false, sendsFiles: true },
      listen: async (inbound, signal) => {
        inbound.connected("plain bot");
        this.#listening.resolve(inbound);
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      },
      partsOf: (text) => (text === "" ? [] : [{ text, plain: text }]),
      send: async (message) => {
        this.sent.push(message);
        return { id: `p${this.sent.length}` };
      },
      download: async ({ ref }) => {
        this.downloads.push(ref);
        const bytes = this.files.get(ref);
        if (!bytes) throw new Error(`there is no file ${ref}`);
        return new Blob([Buffer.from(bytes)]).stream() as ReadableStream<Uint8Array>;
      },
    };
  }

  /** Somebody says something in private. */
  async say(id: string, text: string, peer = "7", more: Partial<ChatMessage> = {}): Promise<void> {
    await (await this.listening).take([
      {
        id,
        place: { guild: null, chat: peer, topic: null, chatType: "dm" },
        sender: { id: peer, name: null },
        text,
        isForUs: true,
        messageId: id,
        ...more,
      },
    ]);
  }
}

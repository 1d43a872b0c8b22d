import type { Channel, ChannelAbilities, ChatMessage, Inbound, Outbound } from "../src/kernel/channel.ts";
import type { ChannelPlugin } from "../src/library/index.ts";

/** A platform of a test's own, by the port that anybody may use: it says what it is told to say, and keeps what it is sent. */
export class PlainPlatform {
  readonly sent: Outbound[] = [];
  /** What can be downloaded, by its `ref`. */
  readonly files = new Map<string, Uint8Array>();
  readonly downloads: string[] = [];
  abilities: ChannelAbilities = { dedupes: false, reacts: false, sendsFiles: true };
  /** Whether messages of ours can be edited; what an edit meets with before it is taken. */
  edits: ((message: Outbound, id: string, signal: AbortSignal) => Promise<void>) | null = null;
  /** What a message meets with before it is shown. */
  onSend: (message: Outbound) => Promise<void> = async () => {};
  /** How long a part may be. */
  maxLength = Number.POSITIVE_INFINITY;
  /** What people see by now, in its order, and everything that any of it has ever shown. */
  readonly screen = new Map<string, string>();
  readonly history: { readonly id: string; readonly text: string; readonly isEdit: boolean }[] = [];
  readonly typed: string[] = [];
  readonly marks: string[] = [];
  onTyping: () => Promise<void> = async () => {};
  #listening = Promise.withResolvers<Inbound>();

  plugin(platform = "plain"): ChannelPlugin {
    return { platform, open: async () => this.#channel() };
  }

  get listening(): Promise<Inbound> {
    return this.#listening.promise;
  }

  #channel(): Channel {
    const edit: Channel["edit"] = async (message, id, signal) => {
      await this.edits?.(message, id, signal);
      this.#show(id, message, true);
    };
    return {
      abilities: this.abilities,
      ...(this.edits ? { edit } : {}),
      listen: async (inbound, signal) => {
        inbound.connected("plain bot");
        this.#listening.resolve(inbound);
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      },
      partsOf: (text) => {
        const parts: { text: string; plain: string }[] = [];
        for (let rest = text; rest !== ""; rest = rest.slice(this.maxLength)) {
          const piece = rest.slice(0, this.maxLength);
          parts.push({ text: piece, plain: piece });
        }
        return parts;
      },
      send: async (message) => {
        await this.onSend(message);
        this.sent.push(message);
        const id = `p${this.sent.length}`;
        this.#show(id, message, false);
        return { id };
      },
      typing: async (place) => {
        this.typed.push(place.chat);
        await this.onTyping();
      },
      react: async (_place, messageId, mark) => {
        this.marks.push(`${messageId} ${mark}`);
      },
      download: async ({ ref }) => {
        this.downloads.push(ref);
        const bytes = this.files.get(ref);
        if (!bytes) throw new Error(`there is no file ${ref}`);
        return new Blob([Buffer.from(bytes)]).stream() as ReadableStream<Uint8Array>;
      },
    };
  }

  #show(id: string, { part, file }: Outbound, isEdit: boolean): void {
    const text = part?.text ?? file?.name ?? "";
    this.screen.set(id, text);
    this.history.push({ id, text, isEdit });
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

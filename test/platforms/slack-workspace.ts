import type { Saying, Shown } from "./stand-in.ts";

export interface SlackMessage {
  readonly ts: string;
  readonly channel: string;
  readonly user: string;
  readonly thread: string | null;
  text: string;
  edits: number;
  readonly file: SlackFile | null;
  readonly reactions: Map<string, Set<string>>;
}

export interface SlackFile {
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  data: Uint8Array | null;
  readonly length: number;
}

/** What people see of one workspace: its channels, threads, files and members. */
export class SlackWorkspace {
  readonly team = "T0TEAM";
  readonly botId = "U0BOT";
  readonly botName = "guildhall";
  readonly messages: SlackMessage[] = [];
  readonly files = new Map<string, SlackFile>();
  readonly names = new Map<string, string>();
  /** Channels that the bot was never invited to. */
  readonly strange = new Set<string>();
  /** Where Slack says that every file lies; null: where it does. */
  address: string | null = null;
  readonly #topics = new Map<string, string>();
  #count = 0;

  /** As Slack writes it: seconds, and six digits that make it the only one. */
  nextTs(): string {
    return `${Math.floor(Date.now() / 1_000)}.${String(++this.#count).padStart(6, "0")}`;
  }

  nextId(prefix: string): string {
    return `${prefix}${String(++this.#count).padStart(8, "0")}`;
  }

  /** In private there is a channel for each person; only those begin with a D. */
  channelOf(name: string, isGroup: boolean): string {
    if (!isGroup) return `D${name}`;
    return name.startsWith("D") ? `C${name}` : name;
  }

  /** By a channel's id, a group's name, or the id of a person for what is said in private. */
  find(chat: string): string {
    const known = new Set(this.messages.map(({ channel }) => channel));
    return [chat, `D${chat}`, `C${chat}`].find((id) => known.has(id)) ?? chat;
  }

  /** The root of the thread that a test calls `topic`; one that does not exist is begun by somebody who calls nobody. */
  rootOf(channel: string, topic: string): string {
    if (this.message(channel, topic)) return topic;
    const key = `${channel}/${topic}`;
    const known = this.#topics.get(key);
    if (known) return known;
    const { ts } = this.add({ channel, user: "U0SOMEBODY", text: `about ${topic}`, thread: null });
    this.#topics.set(key, ts);
    return ts;
  }

  message(channel: string, ts: string): SlackMessage | undefined {
    return this.messages.find((message) => message.channel === channel && message.ts === ts);
  }

  add(message: Pick<SlackMessage, "channel" | "user" | "text" | "thread"> & { readonly file?: SlackFile }): SlackMessage {
    const added = { file: null, ...message, ts: this.nextTs(), edits: 0, reactions: new Map() };
    this.messages.push(added);
    return added;
  }

  /** What somebody writes, and what Slack says of it to those who listen. */
  say(text: string, { peer = "7", name, group, topic, mentions, answers, quotes, files = [] }: Saying): SlackSaid {
    if (name !== undefined) this.names.set(peer, name);
    const channel = this.channelOf(group ?? peer, group !== undefined);
    const answered = answers === undefined ? undefined : this.message(channel, answers);
    const thread = answered ? (answered.thread ?? answered.ts) : topic === undefined ? null : this.rootOf(channel, topic);
    const words = mentions ? `<@${this.botId}> ${escaped(text)}` : escaped(text);
    const { ts } = this.add({ channel, user: peer, text: words, thread });
    const kept = files.map(({ name: fileName, mediaType, data }) => this.addFile(fileName, mediaType, data.length, data));
    const event = {
      type: "message",
      ...(kept.length > 0 ? { subtype: "file_share", files: kept.map(fileView), upload: false } : {}),
      channel,
      channel_type: group === undefined ? "im" : "channel",
      user: peer,
      text: words,
      ts,
      event_ts: ts,
      team: this.team,
      client_msg_id: this.nextId("m-"),
      ...(thread === null ? {} : { thread_ts: thread, parent_user_id: this.message(channel, thread)?.user }),
      ...(quotes
        ? { attachments: [{ is_msg_unfurl: true, is_share: quotes.forwarded === true, author_id: "U0OTHER", text: escaped(quotes.text) }] }
        : {}),
    };
    // What calls the app comes a second time, by another name, and says less of where it was said.
    const { channel_type: _type, parent_user_id: _parent, ...bare } = event;
    return { ts, events: mentions && group !== undefined ? [event, { ...bare, type: "app_mention" }] : [event] };
  }

  addFile(name: string, mediaType: string, length: number, data: Uint8Array | null): SlackFile {
    const file = { id: this.nextId("F"), name, mediaType, length, data };
    this.files.set(file.id, file);
    return file;
  }

  shown(chat: string, topic?: string): Shown[] {
    const channel = this.find(chat);
    const root = topic === undefined ? undefined : this.rootOf(channel, topic);
    return this.accepted.filter((shown) => shown.chat === channel && (root === undefined || shown.topic === root));
  }

  get accepted(): Shown[] {
    return this.messages
      .filter(({ user }) => user === this.botId)
      .map(({ ts, channel, thread, text, file, edits }) => ({
        id: ts,
        chat: channel,
        topic: thread,
        text: asRead(text),
        raw: text,
        answers: thread,
        file: file?.data ? { name: file.name, data: file.data } : null,
        edits,
      }));
  }
}

export interface SlackSaid {
  readonly ts: string;
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

export function fileView({ id, name, mediaType, length }: SlackFile): Record<string, unknown> {
  return { id, name, title: name, mimetype: mediaType, size: length, mode: "hosted", is_external: false };
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Slack's own markup away: links by their words, no stars, no fences, and the three escaped characters as they are. */
function asRead(text: string): string {
  return text
    .replace(/<[^<>|]*\|([^<>]*)>/g, "$1")
    .replace(/<([^<>]*)>/g, "$1")
    .replace(/```\n?/g, "")
    .replace(/`([^`\n]*)`/g, "$1")
    .replace(/(?<![\w*])\*([^*\n]+)\*(?![\w*])/g, "$1")
    .replace(/(?<![\w_])_([^_\n]+)_(?![\w_])/g, "$1")
    .replace(/(?<![\w~])~([^~\n]+)~(?![\w~])/g, "$1")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

import type { Live, LiveChunk } from "../kernel/live.ts";
import { Roster } from "../kernel/roster.ts";
import { LiveFeed } from "./live-feed.ts";

interface Listener {
  /** What it has not taken yet. */
  readonly feed: LiveFeed;
  /** It was given words since the last call. */
  heard: boolean;
  wakeUp: () => void;
}

interface Channel {
  /** The running attempt, for whoever comes later; null while none runs. */
  past: LiveFeed | null;
  /** How many attempts have begun. */
  attempt: number;
  readonly listeners: Set<Listener>;
}

/** Streams inside this process. A listener that is slow gets its text in larger pieces, and never holds up the turn. */
export class LiveHub implements Live {
  readonly #channels = new Roster<string, Channel>();

  begin(runId: string): () => void {
    const channel = this.#channel(runId);
    const attempt = ++channel.attempt;
    channel.past = new LiveFeed();
    for (const listener of channel.listeners) {
      listener.feed.clear();
      restart(listener);
    }
    return () => {
      if (channel.attempt !== attempt) return;
      channel.past = null;
      this.#forgetIfIdle(runId, channel);
    };
  }

  publish(runId: string, said: string | LiveChunk): void {
    const chunk: LiveChunk = typeof said === "string" ? { kind: "text", text: said } : said;
    if (chunk.kind === "text" && chunk.text === "") return;
    const channel = this.#channels.get(runId);
    // An attempt that is over says nothing more, and nothing would ever forget it.
    if (!channel?.past) return;
    if (chunk.kind === "restart") channel.past.dropText();
    else channel.past.add(chunk);
    for (const listener of channel.listeners) {
      if (chunk.kind === "restart") restart(listener);
      else listener.feed.add(chunk);
      listener.wakeUp();
    }
  }

  listen(runId: string, signal: AbortSignal): AsyncIterable<LiveChunk> {
    const channel = this.#channel(runId);
    const listener: Listener = { feed: new LiveFeed(channel.past?.chunks), heard: false, wakeUp: () => {} };
    channel.listeners.add(listener);
    const leave = (): void => {
      channel.listeners.delete(listener);
      this.#forgetIfIdle(runId, channel);
      listener.wakeUp();
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    return chunksOf(listener, signal);
  }

  #channel(runId: string): Channel {
    const known = this.#channels.get(runId);
    if (known) return known;
    const channel: Channel = { past: null, attempt: 0, listeners: new Set() };
    this.#channels.set(runId, channel);
    return channel;
  }

  #forgetIfIdle(runId: string, channel: Channel): void {
    if (channel.past === null && channel.listeners.size === 0 && this.#channels.get(runId) === channel) this.#channels.delete(runId);
  }
}

/** Told only to those who were given words that are void now. */
function restart(listener: Listener): void {
  listener.feed.dropText();
  const told = listener.feed.chunks.some(({ kind }) => kind === "call" || kind === "restart");
  if (listener.heard && !told) listener.feed.add({ kind: "restart" });
  listener.wakeUp();
}

/** What was said before the end is still told: an answer without the call before it would look like another answer. */
async function* chunksOf(listener: Listener, signal: AbortSignal): AsyncGenerator<LiveChunk, void, void> {
  for (;;) {
    const chunk = listener.feed.take();
    if (chunk) {
      if (chunk.kind === "text") listener.heard = true;
      if (chunk.kind === "call" || chunk.kind === "restart") listener.heard = false;
      yield chunk;
    } else if (signal.aborted) return;
    else {
      await new Promise<void>((resolve) => {
        listener.wakeUp = resolve;
      });
    }
  }
}

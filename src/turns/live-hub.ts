import type { Live, LiveChunk } from "../kernel/live.ts";

interface Listener {
  restart: boolean;
  text: string;
  wakeUp: () => void;
}

interface Channel {
  /** Text of the running attempt, for whoever comes later; null while none runs. */
  text: string | null;
  /** How many attempts have begun. */
  attempt: number;
  readonly listeners: Set<Listener>;
}

/** Streams inside this process. A listener that is slow gets its text in larger pieces, and never holds up the turn. */
export class LiveHub implements Live {
  readonly #channels = new Map<string, Channel>();

  begin(runId: string): () => void {
    const channel = this.#channel(runId);
    const attempt = ++channel.attempt;
    channel.text = "";
    for (const listener of channel.listeners) {
      listener.restart = true;
      listener.text = "";
      listener.wakeUp();
    }
    return () => {
      if (channel.attempt !== attempt) return;
      channel.text = null;
      this.#forgetIfIdle(runId, channel);
    };
  }

  publish(runId: string, text: string): void {
    const channel = this.#channel(runId);
    channel.text = (channel.text ?? "") + text;
    for (const listener of channel.listeners) {
      listener.text += text;
      listener.wakeUp();
    }
  }

  listen(runId: string, signal: AbortSignal): AsyncIterable<LiveChunk> {
    const channel = this.#channel(runId);
    const listener: Listener = { restart: false, text: channel.text ?? "", wakeUp: () => {} };
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
    const channel: Channel = { text: null, attempt: 0, listeners: new Set() };
    this.#channels.set(runId, channel);
    return channel;
  }

  #forgetIfIdle(runId: string, channel: Channel): void {
    if (channel.text === null && channel.listeners.size === 0 && this.#channels.get(runId) === channel) this.#channels.delete(runId);
  }
}

async function* chunksOf(listener: Listener, signal: AbortSignal): AsyncGenerator<LiveChunk, void, void> {
  let begun = false;
  while (!signal.aborted) {
    if (listener.restart) {
      listener.restart = false;
      if (begun) yield { kind: "restart" };
    } else if (listener.text !== "") {
      const { text } = listener;
      listener.text = "";
      begun = true;
      yield { kind: "text", text };
    } else {
      await new Promise<void>((resolve) => {
        listener.wakeUp = resolve;
      });
    }
  }
}

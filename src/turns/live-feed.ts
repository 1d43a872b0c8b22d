import type { LiveChunk } from "../kernel/live.ts";

/** An answer may have a million characters (run-turn.ts); it must fit together with what else is seen of its turn. */
const MAX_CHARACTERS = 1_500_000;
const MAX_CHUNKS = 300;
/** Of the output of one call: whoever is late sees where it is now. */
const MAX_PROGRESS = 4_000;

/**
 * Chunks in their order, as few as tell the same: text joins text, output joins the output of the same call. Bounded, whatever a turn
 * does: the output of calls goes first, then the oldest.
 */
export class LiveFeed {
  readonly #chunks: LiveChunk[];
  #characters = 0;

  constructor(chunks: readonly LiveChunk[] = []) {
    this.#chunks = [...chunks];
    for (const chunk of chunks) this.#characters += sizeOf(chunk);
  }

  get chunks(): readonly LiveChunk[] {
    return this.#chunks;
  }

  add(chunk: LiveChunk): void {
    const last = this.#chunks.at(-1);
    const joined = last && join(last, chunk);
    if (joined) {
      this.#characters += sizeOf(joined) - sizeOf(last);
      this.#chunks[this.#chunks.length - 1] = joined;
    } else {
      this.#characters += sizeOf(chunk);
      this.#chunks.push(chunk);
    }
    while (this.#chunks.length > 1 && (this.#chunks.length > MAX_CHUNKS || this.#characters > MAX_CHARACTERS)) this.#dropOne();
  }

  /** Forgets what was said since the last call. Answers whether that was anything. */
  dropText(): boolean {
    const kept = this.#chunks.findLastIndex(({ kind }) => kind !== "text") + 1;
    const dropped = this.#chunks.splice(kept);
    for (const chunk of dropped) this.#characters -= sizeOf(chunk);
    return dropped.length > 0;
  }

  take(): LiveChunk | undefined {
    const first = this.#chunks.shift();
    if (first) this.#characters -= sizeOf(first);
    return first;
  }

  clear(): void {
    this.#chunks.length = 0;
    this.#characters = 0;
  }

  #dropOne(): void {
    const progress = this.#chunks.findIndex(({ kind }) => kind === "progress");
    const [dropped] = this.#chunks.splice(Math.max(0, progress), 1);
    if (dropped) this.#characters -= sizeOf(dropped);
  }
}

function join(last: LiveChunk, next: LiveChunk): LiveChunk | undefined {
  if (last.kind === "text" && next.kind === "text") return { kind: "text", text: last.text + next.text };
  if (last.kind === "progress" && next.kind === "progress" && last.place === next.place)
    return { ...next, text: (last.text + next.text).slice(-MAX_PROGRESS) };
  return undefined;
}

function sizeOf(chunk: LiveChunk): number {
  switch (chunk.kind) {
    case "text":
    case "progress":
    case "note":
      return chunk.text.length;
    case "call":
      return chunk.args.length;
    case "called":
      return chunk.note.length;
    case "asks":
      return chunk.shown.length;
    case "restart":
      return 0;
  }
}

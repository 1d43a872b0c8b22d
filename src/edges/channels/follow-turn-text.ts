import type { LiveChunk } from "../../kernel/live.ts";

/** More would not fit in the one message that shows it. */
const MAX_KEPT = 16_000;

/** What a turn has said so far, as it is shown: its newest words, or the ones before while it calls something. */
export class GrowingText {
  #said = "";
  #before = "";
  readonly #calls = new Map<number, string>();
  #changed = Promise.withResolvers<void>();

  async follow(chunks: AsyncIterable<LiveChunk>): Promise<void> {
    for await (const chunk of chunks) {
      if (this.#take(chunk)) this.wake();
    }
  }

  /** Resolves once there is something that was not there when it resolved last. */
  async changed(): Promise<void> {
    await this.#changed.promise;
    this.#changed = Promise.withResolvers();
  }

  wake(): void {
    this.#changed.resolve();
  }

  /** Without a word about what comes. */
  get said(): string {
    return this.#said || this.#before;
  }

  /** Empty: nothing yet. A call alone is nothing: that somebody types says as much. */
  shown(): string {
    if (this.said === "") return "";
    if (this.#said !== "" || this.#calls.size === 0) return `${this.said.trimEnd()} …`;
    return `${this.#before.trimEnd()}\n\n⚙ ${[...new Set(this.#calls.values())].map((tool) => `\`${tool}\``).join(", ")} …`;
  }

  #take(chunk: LiveChunk): boolean {
    switch (chunk.kind) {
      case "text":
        if (this.#said.length >= MAX_KEPT) return false;
        this.#said = (this.#said + chunk.text).slice(0, MAX_KEPT);
        return true;
      case "restart":
        this.#said = "";
        return false;
      case "call":
        this.#before = this.said;
        this.#said = "";
        this.#calls.set(chunk.place, chunk.tool);
        return true;
      case "called":
        this.#calls.delete(chunk.place);
        return true;
      default:
        return false;
    }
  }
}

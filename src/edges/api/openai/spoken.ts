import type { LiveChunk } from "../../../kernel/live.ts";

/**
 * What of an answer has been sent on, where nothing that was sent can be taken back. An answer that begins anew goes on as long as it
 * says the same; what is committed in the end has the last word.
 */
export class Spoken {
  /** Sent since the last call of a tool. */
  #sent = "";
  /** Said since then, by the attempt that runs. */
  #said = "";
  #spoiled = false;
  #before = false;

  /** Something was sent that the answer does not say. */
  get spoiled(): boolean {
    return this.#spoiled;
  }

  /** Answers what is to be sent now. `fresh`: the first words after a call of a tool. */
  hear(chunk: LiveChunk): { readonly text: string; readonly fresh: boolean } | undefined {
    if (chunk.kind === "restart") this.#said = "";
    if (chunk.kind === "call") {
      if (this.#sent !== "") this.#before = true;
      // Words that were sent and are said no more.
      if (!this.#said.startsWith(this.#sent)) this.#spoiled = true;
      this.#said = "";
      this.#sent = "";
    }
    if (chunk.kind !== "text") return undefined;
    this.#said += chunk.text;
    return this.#sendUpTo(this.#said);
  }

  /** What is missing of the answer that was committed. */
  rest(reply: string): { readonly text: string; readonly fresh: boolean } | undefined {
    if (this.#sent.trimEnd() === reply.trimEnd()) return undefined;
    return this.#sendUpTo(reply) ?? this.#miss();
  }

  #sendUpTo(said: string): { readonly text: string; readonly fresh: boolean } | undefined {
    if (!said.startsWith(this.#sent) || said.length === this.#sent.length) return undefined;
    const text = said.slice(this.#sent.length);
    const fresh = this.#sent === "" && this.#before;
    this.#sent = said;
    return { text, fresh };
  }

  #miss(): undefined {
    this.#spoiled = true;
    return undefined;
  }
}

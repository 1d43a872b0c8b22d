/** What was said lately, of what passed through here: WhatsApp says which message is answered, and not what it says. */
export class Remembered {
  readonly #said = new Map<string, Said>();

  get(id: string): Said | undefined {
    return this.#said.get(id);
  }

  add(id: string, { by, text }: Said): void {
    if (text === "") return;
    this.#said.delete(id);
    this.#said.set(id, { by, text: text.slice(0, MAX_CHARACTERS).toWellFormed() });
    for (const oldest of this.#said.keys()) {
      if (this.#said.size <= MAX_MESSAGES) return;
      this.#said.delete(oldest);
    }
  }
}

/** `by` null: by us. */
export interface Said {
  readonly by: string | null;
  readonly text: string;
}

const MAX_MESSAGES = 1_000;
const MAX_CHARACTERS = 1_000;

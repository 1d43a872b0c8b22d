import { StringDecoder } from "node:string_decoder";

/** Of everything that was said the beginning and the end, within bounds, however much it was. */
export class KeptOutput {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #decoder = new StringDecoder("utf8");
  #head = "";
  #tail: string[] = [];
  #tailLength = 0;
  #dropped = 0;
  /** Everything, kept or not. */
  bytes = 0;

  constructor(headLimit: number, tailLimit: number) {
    this.#headLimit = headLimit;
    this.#tailLimit = tailLimit;
  }

  /** Answers what it was as text. */
  add(data: Uint8Array): string {
    this.bytes += data.length;
    const text = this.#decoder.write(Buffer.from(data.buffer, data.byteOffset, data.length));
    this.#keep(text);
    return text;
  }

  end(): void {
    this.#keep(this.#decoder.end());
  }

  #keep(text: string): void {
    const room = this.#headLimit - this.#head.length;
    if (room > 0) this.#head += text.slice(0, room);
    const rest = room > 0 ? text.slice(room) : text;
    if (rest === "") return;
    this.#tail.push(rest);
    this.#tailLength += rest.length;
    for (let first = this.#tail[0]; first !== undefined && this.#tailLength - first.length >= this.#tailLimit; first = this.#tail[0]) {
      this.#tail.shift();
      this.#tailLength -= first.length;
      this.#dropped += first.length;
    }
  }

  /** Characters that are missing between the beginning and the end. */
  get cut(): number {
    return this.#dropped + Math.max(0, this.#tailLength - this.#tailLimit);
  }

  get text(): string {
    const tail = this.#tail.join("").slice(-this.#tailLimit);
    return this.cut === 0 ? this.#head + tail : `${this.#head}\n[… ${this.cut} characters were not kept …]\n${tail}`;
  }
}

/** Shorter texts occur by chance. All that are looked for have at least this length, and their beginnings tell them apart. */
export const MIN_LENGTH = 6;
const BUCKETS = 1 << 16;

/** A text without what was found in it, as far as that is settled. */
export interface Cleaned {
  readonly text: string;
  /** How much of the text is settled; from there on it may be the beginning of something, and must be given again with what follows. */
  readonly settled: number;
  /** How much of what follows belongs to something that was found already. */
  readonly covered: number;
}

/**
 * Replaces whatever of many texts stands in a text, of several at one place the longest; where two overlap, both go. A look at a place costs
 * about the same for three texts as for ten thousand, also where all of them begin alike.
 */
export class SecretFinder {
  /** What stands for each text. */
  readonly #shown: ReadonlyMap<string, string>;
  /** By the beginning of a text: the lengths of those that begin so, longest first. */
  readonly #lengths = new Map<string, number[]>();
  /** Whether any text begins with three characters of this kind. */
  readonly #begins = new Uint8Array(BUCKETS);
  readonly #sorted: readonly string[];
  readonly #longest: number;

  constructor(shown: ReadonlyMap<string, string>) {
    this.#shown = shown;
    this.#sorted = [...shown.keys()].sort();
    this.#longest = this.#sorted.reduce((longest, { length }) => Math.max(longest, length), 0);
    for (const text of this.#sorted) {
      this.#begins[bucketOf(text, 0)] = 1;
      const start = text.slice(0, MIN_LENGTH);
      const lengths = this.#lengths.get(start) ?? [];
      if (!lengths.includes(text.length))
        this.#lengths.set(
          start,
          [...lengths, text.length].sort((a, b) => b - a),
        );
    }
  }

  get isEmpty(): boolean {
    return this.#longest === 0;
  }

  /** `covered` is what the piece before has left; the last piece is settled as a whole. */
  clean(text: string, covered = 0, isLast = true): Cleaned {
    const growsFrom = isLast ? text.length : text.length - this.#longest + 1;
    let out = "";
    let hidden = covered;
    let written = Math.min(covered, text.length);
    let at = 0;
    for (; at < text.length; at++) {
      if (at >= growsFrom && this.#mayGrow(text.slice(at))) break;
      const length = this.#lengthAt(text, at);
      if (length === 0) continue;
      if (at >= hidden) out += `${text.slice(written, at)}${this.#shown.get(text.slice(at, at + length))}`;
      hidden = Math.max(hidden, at + length);
      written = hidden;
    }
    const rest = written === 0 && at === text.length ? text : text.slice(written, Math.max(written, at));
    return { text: out + rest, settled: at, covered: Math.max(0, hidden - at) };
  }

  #lengthAt(text: string, at: number): number {
    if (at + MIN_LENGTH > text.length || this.#begins[bucketOf(text, at)] === 0) return 0;
    const lengths = this.#lengths.get(text.slice(at, at + MIN_LENGTH));
    return lengths?.find((length) => this.#shown.has(text.slice(at, at + length))) ?? 0;
  }

  /** Whether this is the beginning of a text that is longer: in the order of texts, such a one comes right after it. */
  #mayGrow(rest: string): boolean {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] as string) <= rest) low = middle + 1;
      else high = middle;
    }
    return this.#sorted[low]?.startsWith(rest) ?? false;
  }
}

function bucketOf(text: string, at: number): number {
  return ((text.charCodeAt(at) << 10) ^ (text.charCodeAt(at + 1) << 5) ^ text.charCodeAt(at + 2)) & (BUCKETS - 1);
}

import { MIN_LENGTH, SecretFinder } from "./secret-finder.ts";

/** Port: the text without any secret's value. */
export type Redact = (text: string) => string;

export type NamedSecret = readonly [name: string, value: string];

/** Of a secret of several lines, such as a key in a file, a line of this length gives it away by itself. */
const TELLING_LINE = 16;

/** Replaces every known secret by its name: `[secret NAME]`. Without secrets it costs nothing. */
export function redactor(secrets: Iterable<NamedSecret>): Redact {
  const finder = new SecretFinder(formsOf(secrets));
  return finder.isEmpty ? (text) => text : (text) => finder.clean(text).text;
}

/** The secrets of the moment. A config that is read again brings others; those of before are still nobody else's to see. */
export class Redaction {
  readonly #secrets = new Map<string, string>();
  #finder = new SecretFinder(new Map());
  #changes = 0;

  /** From now on these too are hidden. */
  add(secrets: Iterable<NamedSecret>): void {
    for (const [name, value] of secrets) this.#secrets.set(value, name);
    this.#changes++;
    this.#finder = new SecretFinder(formsOf([...this.#secrets].map(([value, name]) => [name, value] as const)));
  }

  /** How often there were more secrets: what was clean before need not be any more. */
  get changes(): number {
    return this.#changes;
  }

  readonly text: Redact = (text) => (this.#finder.isEmpty ? text : this.#finder.clean(text).text);

  /** The same for every text in a JSON value, names of keys included. */
  readonly value = <T>(value: T): T => (this.#finder.isEmpty ? value : (this.#walk(value) as T));

  /** For text that comes in pieces: holds back what may be the beginning of a secret until it is known. */
  stream(emit: (text: string) => void): { push(text: string): void; end(): void } {
    let held = "";
    let covered = 0;
    const say = (text: string, isLast: boolean): void => {
      const cleaned = this.#finder.clean(text, covered, isLast);
      held = text.slice(cleaned.settled);
      covered = cleaned.covered;
      if (cleaned.text !== "") emit(cleaned.text);
    };
    return { push: (text) => say(held + text, false), end: () => say(held, true) };
  }

  #walk(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (value === null || typeof value !== "object") return value;
    // What holds no secret stays the same object: most values do not, and large ones are dear to copy.
    if (Array.isArray(value)) {
      const inner = value.map((one) => this.#walk(one));
      return inner.every((one, index) => one === value[index]) ? value : inner;
    }
    const before = Object.entries(value);
    const after = before.map(([key, inner]) => [this.text(key), this.#walk(inner)] as const);
    return after.every(([key, inner], index) => key === before[index]?.[0] && inner === before[index]?.[1])
      ? value
      : Object.fromEntries(after);
  }
}

/** A value as it is, as it stands inside JSON, and as it stands in a URL; each with what replaces it. */
function formsOf(secrets: Iterable<NamedSecret>): Map<string, string> {
  const forms = new Map<string, string>();
  for (const [name, value] of secrets) {
    const shown = `[secret ${name.replace(/[^\w.-]/g, "_")}]`;
    const inUrl = encodeURIComponent(value.toWellFormed());
    const inJson = asJson(value);
    // A path that was taken apart and put together again keeps only its slashes and question marks encoded; JSON may stand inside JSON.
    for (const form of [value, value.trim(), inJson, asJson(inJson), inUrl, decodeURI(inUrl), ...tellingLines(value)])
      if (form.length >= MIN_LENGTH && !forms.has(form)) forms.set(form, shown);
  }
  return forms;
}

function asJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** `-----BEGIN …` and its like tell nothing. */
function tellingLines(value: string): string[] {
  if (!value.includes("\n")) return [];
  return value.split("\n").flatMap((line) => (line.trim().length >= TELLING_LINE && !line.includes("-----") ? [line.trim()] : []));
}

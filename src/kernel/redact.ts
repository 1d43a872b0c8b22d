/** Port: the text without any secret's value. */
export type Redact = (text: string) => string;

export type NamedSecret = readonly [name: string, value: string];

/** Shorter values occur by chance, and replacing them would tell more than it hides. */
const MIN_LENGTH = 6;

/** Replaces every known secret by its name: `[secret NAME]`. Without secrets it costs nothing. */
export function redactor(secrets: Iterable<NamedSecret>): Redact {
  const names = formsOf(secrets);
  if (names.size === 0) return (text) => text;
  const pattern = patternOf(longestFirst(names));
  return (text) => text.replace(pattern, (form) => `[secret ${names.get(form)}]`);
}

/** The secrets of the moment. A config that is read again brings others; those of before are still nobody else's to see. */
export class Redaction {
  readonly #secrets = new Map<string, string>();
  #redact: Redact = (text) => text;
  #forms: readonly string[] = [];
  #pattern = /(?!)/g;

  /** From now on these too are hidden. */
  add(secrets: Iterable<NamedSecret>): void {
    for (const [name, value] of secrets) this.#secrets.set(value, name);
    const all = [...this.#secrets].map(([value, name]) => [name, value] as const);
    this.#redact = redactor(all);
    this.#forms = longestFirst(formsOf(all));
    this.#pattern = patternOf(this.#forms);
  }

  readonly text: Redact = (text) => this.#redact(text);

  /** The same for every text in a JSON value, names of keys included. */
  readonly value = <T>(value: T): T => (this.#forms.length === 0 ? value : (this.#walk(value) as T));

  /** For text that comes in pieces: holds back what may be the beginning of a secret until it is known. */
  stream(emit: (text: string) => void): { push(text: string): void; end(): void } {
    let held = "";
    return {
      push: (text) => {
        if (this.#forms.length === 0 && held === "") {
          emit(text);
          return;
        }
        const all = held + text;
        const safe = this.#safeLengthOf(all);
        held = all.slice(safe);
        if (safe > 0) emit(this.#redact(all.slice(0, safe)));
      },
      end: () => {
        if (held !== "") emit(this.#redact(held));
        held = "";
      },
    };
  }

  /** How much of the text cannot become part of a secret, whatever comes next: a whole one that may yet be a longer one is not cut. */
  #safeLengthOf(text: string): number {
    let held = 0;
    for (const form of this.#forms)
      for (let length = Math.min(form.length - 1, text.length); length > held; length--)
        if (text.endsWith(form.slice(0, length))) held = length;
    const safe = text.length - held;
    if (held === 0) return safe;
    for (const { 0: form, index } of text.matchAll(this.#pattern)) if (index < safe && index + form.length > safe) return index;
    return safe;
  }

  #walk(value: unknown): unknown {
    if (typeof value === "string") return this.#redact(value);
    if (value === null || typeof value !== "object") return value;
    // What holds no secret stays the same object: most values do not, and large ones are dear to copy.
    if (Array.isArray(value)) {
      const inner = value.map((one) => this.#walk(one));
      return inner.every((one, index) => one === value[index]) ? value : inner;
    }
    const before = Object.entries(value);
    const after = before.map(([key, inner]) => [this.#redact(key), this.#walk(inner)] as const);
    return after.every(([key, inner], index) => key === before[index]?.[0] && inner === before[index]?.[1])
      ? value
      : Object.fromEntries(after);
  }
}

/** A value as it is, as it stands inside JSON, and as it stands in a URL; each with the name that replaces it. */
function formsOf(secrets: Iterable<NamedSecret>): Map<string, string> {
  const forms = new Map<string, string>();
  for (const [name, value] of secrets) {
    const shown = name.replace(/[^\w.-]/g, "_");
    const inUrl = encodeURIComponent(value.toWellFormed());
    // A path that was taken apart and put together again keeps only its slashes and question marks encoded.
    for (const form of [value, value.trim(), JSON.stringify(value).slice(1, -1), inUrl, decodeURI(inUrl)])
      if (form.length >= MIN_LENGTH && !forms.has(form)) forms.set(form, shown);
  }
  return forms;
}

/** A secret that contains another is found as itself. */
function longestFirst(forms: ReadonlyMap<string, string>): string[] {
  return [...forms.keys()].sort((a, b) => b.length - a.length);
}

function patternOf(forms: readonly string[]): RegExp {
  return new RegExp(forms.map(escaped).join("|"), "g");
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

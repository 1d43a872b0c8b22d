/** What belongs to one agent and must never be seen by another: strings that occur nowhere else. */
export class Canaries {
  readonly #byKind = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #agent: string;
  readonly #chance: () => string;

  constructor(agent: string, chance: () => string) {
    this.#agent = agent;
    this.#chance = chance;
  }

  /** The same for the same kind. Letters and digits only: they look the same in JSON, in a URL and in a log. */
  of(kind: string): string {
    const known = this.#byKind.get(kind);
    if (known !== undefined) return known;
    const canary = `canary${kind.replaceAll(/[^a-z0-9]/gi, "")}${this.#agent.replaceAll(/[^a-z0-9]/g, "")}${this.#chance()}`;
    this.#byKind.set(kind, canary);
    return canary;
  }

  /** A name that the product gave to something of the agent's: an id, a key. Who has not named it must not be told of it. */
  name(kind: string, name: string): void {
    this.#names.set(kind, name);
  }

  /** The kinds of those that occur in the text, but for names that were said in asking. */
  in(text: string, said = ""): string[] {
    const told = [...this.#names].filter(([, name]) => !said.includes(name));
    return [...this.#byKind, ...told].filter(([, canary]) => text.includes(canary)).map(([kind]) => kind);
  }

  /** Without some kinds: those that the operator lets the other see. */
  without(kinds: readonly string[]): Canaries {
    const fewer = new Canaries(this.#agent, this.#chance);
    for (const [kind, canary] of this.#byKind) if (!kinds.includes(kind)) fewer.#byKind.set(kind, canary);
    for (const [kind, name] of this.#names) if (!kinds.includes(kind)) fewer.#names.set(kind, name);
    return fewer;
  }

  /** Only what the agent itself wrote. */
  get contents(): Canaries {
    return this.without([...this.#names.keys()]);
  }
}

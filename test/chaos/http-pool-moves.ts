import type { HttpClient } from "./http-client.ts";
import { counterKey, POOL, type PoolInput, type PoolOutput, pairKeys, REGISTERS, registerKey, type Shown } from "./http-records.ts";
import type { Answer, Answered } from "./http-wire.ts";

const path = (key: string): string => `/api/pools/${POOL}/entries/${encodeURIComponent(key)}`;

interface SentEntry {
  readonly version: number;
  readonly value: unknown;
}

/** Reads, blind writes, compare-and-set and deletes of a few keys, by the versions this client has seen. */
export class PoolMoves {
  readonly #client: HttpClient;
  readonly #seen = new Map<string, number | null>();

  constructor(client: HttpClient) {
    this.#client = client;
  }

  async register(): Promise<void> {
    const client = this.#client;
    const key = registerKey(client.generation, Math.floor(client.random.fraction() * REGISTERS));
    const choice = client.random.fraction();
    const version = this.#seen.get(key) ?? null;
    if (choice < 0.3) await this.#perform(key, { read: true });
    else if (choice < 0.5) await this.#perform(key, { write: client.unique() });
    else if (choice < 0.58) await this.#perform(key, { remove: null });
    else if (choice < 0.64) await this.#perform(key, { remove: version });
    else await this.#perform(key, { swap: [version, client.unique()] });
  }

  async increment(): Promise<void> {
    const key = counterKey(this.#client.generation);
    const read = await this.#perform(key, { read: true });
    if (!read || !("shown" in read)) return;
    const [version, value] = read.shown ?? [null, 0];
    await this.#perform(key, { swap: [version, (value as number) + 1] });
  }

  /** Two keys in one batch, with a key: both or neither, once. */
  async pair(): Promise<void> {
    const client = this.#client;
    const { generation } = client;
    const value = client.unique();
    const writes = pairKeys(generation).map((key) => ({ key, value }));
    await client.keyed(`/api/pools/${POOL}/batch`, { writes }, (answer) => {
      if (answer && answer.status !== 200 && answer.status !== 201) return client.odd("a batch", answer);
      const entries = answer && (answer.body.entries as SentEntry[]);
      client.tell({ kind: "pair", generation, value, versions: entries?.map((entry) => entry.version) ?? null });
    });
  }

  async #perform(key: string, input: PoolInput): Promise<PoolOutput | null> {
    const answer = await this.#send(key, input);
    const { called, returned } = answer;
    const output = answer.status === null ? null : this.#outputOf(input, answer);
    if (output === undefined) return null;
    this.#client.tell({ kind: "entry", key, input, output, called, returned });
    if (output) this.#remember(key, output);
    return output;
  }

  #send(key: string, input: PoolInput): Promise<Answer> {
    if ("read" in input) return this.#client.ask("GET", path(key));
    if ("remove" in input) return this.#client.ask("DELETE", path(key), { headers: ifMatch(input.remove) });
    if ("write" in input) return this.#client.ask("PUT", path(key), { body: { value: input.write } });
    const [version, value] = input.swap;
    const headers: Record<string, string> = version === null ? { "if-none-match": "*" } : ifMatch(version);
    return this.#client.ask("PUT", path(key), { body: { value }, headers });
  }

  #outputOf(input: PoolInput, answer: Answered): PoolOutput | undefined {
    const { status } = answer;
    const body = answer.body as unknown as SentEntry & { error?: { details?: { current?: SentEntry | null } } };
    const refused = "swap" in input || ("remove" in input && input.remove !== null);
    if (status === 412 && refused) return { refused: pairOf(body.error?.details?.current ?? null) };
    if ("remove" in input) {
      if (status === 200 || status === 204) return { removed: true };
      if (status === 404) return { absent: true };
    } else if ("read" in input) {
      if (status === 404) return { shown: null };
      if (status === 200 && tagFits(answer, body)) return { shown: [body.version, body.value] };
    } else if ((status === 200 || status === 201) && tagFits(answer, body)) return { wrote: [body.version, body.value] };
    this.#client.odd(JSON.stringify(input), answer);
    return undefined;
  }

  #remember(key: string, output: PoolOutput): void {
    if ("shown" in output) this.#seen.set(key, output.shown?.[0] ?? null);
    else if ("wrote" in output) this.#seen.set(key, output.wrote[0]);
    else if ("refused" in output) this.#seen.set(key, output.refused?.[0] ?? null);
    else this.#seen.set(key, null);
  }
}

const ifMatch = (version: number | null): Record<string, string> => (version === null ? {} : { "if-match": `"${version}"` });
const tagFits = ({ headers }: Answered, { version }: SentEntry): boolean => headers.etag === `"${version}"`;
const pairOf = (entry: SentEntry | null): Shown => (entry ? [entry.version, entry.value] : null);

import {
  type Batch,
  type Blame,
  batchAnswer,
  blame,
  type Difference,
  difference,
  type Entry,
  type EntryHistory,
  type EntryList,
  type EntryReader,
  endorse,
  entry,
  entryHistory,
  entryList,
  entryReaders,
  type NewPool,
  type Pool,
  type PoolChange,
  type PoolDetails,
  type PoolSnapshot,
  pool,
  poolChange,
  poolDetails,
  poolList,
  poolSnapshot,
  type RetractionAnswer,
  retraction,
} from "../contract/pools.ts";
import type { ApiClient } from "./api-client.ts";

export interface PutOptions {
  /** The version it replaces; null: there must be none yet. */
  readonly ifVersion?: number | null | undefined;
  readonly ttl?: string | number | undefined;
  readonly note?: string | undefined;
}

/** Shared memory, as the token's identity. */
export class PoolsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  async list(): Promise<Pool[]> {
    return (await this.#api.get(poolList, "/api/pools")).pools;
  }

  make(definition: NewPool): Promise<Pool> {
    return this.#api.post(pool, "/api/pools", definition);
  }

  details(name: string): Promise<PoolDetails> {
    return this.#api.get(poolDetails, poolPath(name));
  }

  entries(name: string, page: { prefix?: string | undefined; after?: string | undefined; limit?: number } = {}): Promise<EntryList> {
    return this.#api.get(entryList, `${poolPath(name)}/entries`, page);
  }

  read(name: string, key: string, which: { version?: number | undefined; full?: boolean | undefined } = {}): Promise<Entry> {
    return this.#api.get(entry, entryPathOf(name, key), which);
  }

  /** `pool.conflict` when it is at another version: the current entry is in `details.current`. */
  put(name: string, key: string, value: unknown, { ifVersion, ttl, note }: PutOptions = {}): Promise<Entry> {
    return this.#api.put(entry, entryPathOf(name, key), { value, ttl, note }, conditions(ifVersion));
  }

  /** Answers the tombstone. */
  remove(name: string, key: string, ifVersion?: number): Promise<Entry> {
    return this.#api.remove(entry, entryPathOf(name, key), conditions(ifVersion));
  }

  async batch(name: string, writes: Batch): Promise<Entry[]> {
    return (await this.#api.post(batchAnswer, `${poolPath(name)}/batch`, writes)).entries;
  }

  history(name: string, key: string, page: { after?: number | undefined; limit?: number } = {}): Promise<EntryHistory> {
    return this.#api.get(entryHistory, `${entryPathOf(name, key)}/history`, page);
  }

  difference(name: string, key: string, from: number, to: number): Promise<Difference> {
    return this.#api.get(difference, `${entryPathOf(name, key)}/diff`, { from, to });
  }

  async readers(name: string, key: string): Promise<EntryReader[]> {
    return (await this.#api.get(entryReaders, `${entryPathOf(name, key)}/readers`)).readers;
  }

  blame(name: string, key: string, version?: number): Promise<Blame> {
    return this.#api.get(blame, `${entryPathOf(name, key)}/blame`, { version });
  }

  retract(name: string, key: string, version: number, reason: string): Promise<RetractionAnswer> {
    return this.#api.post(retraction, `${entryPathOf(name, key)}/retract`, { version, reason });
  }

  endorse(name: string, key: string, version: number | undefined, reason: string): Promise<Entry> {
    return this.#api.post(entry, `${entryPathOf(name, key)}/endorse`, endorse.parse({ version, reason }));
  }

  snapshot(name: string, page: { at?: number; prefix?: string; after?: string; limit?: number } = {}): Promise<PoolSnapshot> {
    return this.#api.get(poolSnapshot, `${poolPath(name)}/snapshot`, page);
  }

  /** Every change after an event, in order, once each, across broken connections, until the signal. */
  async *watch(name: string, after: number, signal: AbortSignal): AsyncGenerator<PoolChange, void, void> {
    for await (const { data } of this.#api.watch(`${poolPath(name)}/watch`, after, signal)) yield poolChange.parse(JSON.parse(data));
  }
}

function poolPath(name: string): string {
  return `/api/pools/${encodeURIComponent(name)}`;
}

function entryPathOf(name: string, key: string): string {
  return `${poolPath(name)}/entries/${encodeURIComponent(key)}`;
}

function conditions(ifVersion: number | null | undefined): Readonly<Record<string, string>> {
  if (ifVersion === undefined) return {};
  return ifVersion === null ? { "if-none-match": "*" } : { "if-match": `"${ifVersion}"` };
}

import { MAX_BATCH } from "../../contract/pools.ts";
import { type Caller, OPERATOR } from "../../kernel/caller.ts";
import { canonicalJson } from "../../kernel/canonical-json.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import type { PoolWrite } from "./decide-write.ts";
import { lockHeads } from "./heads.ts";
import type { PoolRegistry } from "./registry.ts";
import { writeEntries } from "./write-entries.ts";

/** The house itself: nobody's rights of this moment keep it from tidying up. */
const HOUSE: Caller = { ...OPERATOR, name: "guildhall" };

/** A turn, by whom it was taken. */
export interface Turn {
  readonly agent: string;
  readonly run: string;
}

interface ChainRow {
  readonly version: number;
  readonly base_version: number | null;
  readonly agent: string;
  readonly run: string;
}

/**
 * What turns have added to lists goes when their work is done again: whatever else they wrote is replaced then, but an addition would be made a
 * second time. What others have added stays. A pool that takes no more writes keeps it all.
 */
export async function takeBackAdditions(
  store: Store,
  registry: PoolRegistry,
  tx: Tx,
  turns: readonly Turn[],
  pool: string,
  keys: readonly string[],
  note: string,
): Promise<void> {
  const found = await registry.row(tx, pool);
  if (found?.state !== "open" || turns.length === 0) return;
  const rules = await registry.rulesOf(tx, pool, found.revision);
  const lists = [...new Set(keys)].filter((key) => rules.of(key).policy === "append");
  if (lists.length === 0) return;
  await lockHeads(
    store,
    tx,
    lists.map((key) => ({ pool, key })),
  );
  const own = new Set(turns.map(({ agent, run }) => JSON.stringify([agent, run])));
  const writes: PoolWrite[] = [];
  for (const key of lists) {
    const left = await leftOf(store, tx, own, pool, key);
    if (left) writes.push(left.length === 0 ? { key, remove: true, note } : { key, value: left, instead: true, note });
  }
  for (let first = 0; first < writes.length; first += MAX_BATCH)
    await writeEntries(store, registry, tx, HOUSE, pool, writes.slice(first, first + MAX_BATCH), {});
}

/** Undefined: none of it was theirs. */
async function leftOf(store: Store, tx: Tx, own: ReadonlySet<string>, pool: string, key: string): Promise<unknown[] | undefined> {
  // From the current one down to where the list began: what was before it ended once is no part of it.
  const chain = await tx.all<ChainRow>`with recursive chain (version, base_version, agent, run) as (
      select v.version, v.base_version, v.agent, v.run from pool_keys h
      join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
      where h.pool = ${pool} and h.key = ${key} and (h.expires_at is null or h.expires_at > now_ms())
      union all select v.version, v.base_version, v.agent, v.run from chain c
      join pool_versions v on v.pool = ${pool} and v.key = ${key} and v.version = c.base_version)
    select version, base_version, agent, run from chain order by version`;
  const theirs = chain.filter(({ agent, run }) => own.has(JSON.stringify([agent, run])));
  const last = chain.at(-1);
  if (!last || theirs.length === 0) return undefined;
  const left = await listAt(store, tx, pool, key, last.version);
  const places = new Map<string, number[]>();
  for (const [place, item] of left.entries()) {
    const text = canonicalJson(item);
    const known = places.get(text);
    if (known) known.push(place);
    else places.set(text, [place]);
  }
  const gone = new Set<number>();
  const lengths = new Map<number | null, number>([[null, 0]]);
  for (const { version, base_version: base } of theirs) {
    const before = lengths.get(base) ?? (await listAt(store, tx, pool, key, base as number)).length;
    const then = await listAt(store, tx, pool, key, version);
    lengths.set(version, then.length);
    for (const item of then.slice(before)) {
      // Of those that are the same the last one: which of them it was makes no difference.
      const place = places.get(canonicalJson(item))?.pop();
      if (place !== undefined) gone.add(place);
    }
  }
  return left.filter((_, place) => !gone.has(place));
}

async function listAt(store: Store, tx: Tx, pool: string, key: string, version: number): Promise<readonly unknown[]> {
  const row = await tx.get<{ value: string | null; blob: string | null }>`select value, blob from pool_versions
    where pool = ${pool} and key = ${key} and version = ${version}`;
  const bytes = row?.blob ? await store.blobs.get(row.blob, tx) : undefined;
  const value: unknown = JSON.parse(bytes ? Buffer.from(bytes).toString("utf8") : (row?.value ?? "[]"));
  return Array.isArray(value) ? value : [];
}

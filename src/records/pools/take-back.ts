import { type Caller, OPERATOR } from "../../kernel/caller.ts";
import { canonicalJson } from "../../kernel/canonical-json.ts";
import { isFailure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import type { PoolWrite } from "./decide-write.ts";
import { fullValue } from "./freshness.ts";
import { lockHeads } from "./heads.ts";
import type { PoolRegistry } from "./registry.ts";
import { currentValues } from "./step-memory.ts";
import { VERSION_COLUMNS, type VersionRow } from "./version-rows.ts";
import { writeEntries } from "./write-entries.ts";

/** The house itself: nobody's rights of this moment keep it from tidying up. */
const HOUSE: Caller = { ...OPERATOR, name: "guildhall" };

/** A turn, by whom it was taken. */
export interface Turn {
  readonly agent: string;
  readonly run: string;
}

/**
 * What a turn has added to lists goes when its work is done again: whatever else it wrote is replaced then, but an addition would be made a second
 * time. What others have added stays. Where the pool takes no more writes, all of it does.
 */
export async function takeBackAdditions(...[store, registry, tx, turn, pool, keys, note]: Parameters<typeof writeWithout>): Promise<void> {
  try {
    await writeWithout(store, registry, tx, turn, pool, keys, note);
  } catch (error) {
    // Everything is decided before anything is written.
    if (!isFailure(error) || !(error.code.startsWith("pool.") || error.code === "request.not_found")) throw error;
  }
}

async function writeWithout(
  store: Store,
  registry: PoolRegistry,
  tx: Tx,
  turn: Turn,
  pool: string,
  keys: readonly string[],
  note: string,
): Promise<void> {
  const { rules } = await registry.find(tx, HOUSE, pool);
  const lists = keys.filter((key) => rules.of(key).policy === "append");
  if (lists.length === 0) return;
  await lockHeads(
    store,
    tx,
    lists.map((key) => ({ pool, key })),
  );
  const current = await currentValues(store, tx, pool, lists);
  const writes: PoolWrite[] = [];
  for (const [key, { value }] of current) {
    const added = Array.isArray(value) ? await additionsOf(store, tx, turn, pool, key) : [];
    if (added.length > 0) writes.push({ key, value: without(value as unknown[], added), instead: true, note });
  }
  if (writes.length > 0) await writeEntries(store, registry, tx, HOUSE, pool, writes, {});
}

async function additionsOf(store: Store, tx: Tx, { agent, run }: Turn, pool: string, key: string): Promise<unknown[]> {
  const own = await tx.all<VersionRow>`select ${VERSION_COLUMNS} from pool_versions v
    where v.pool = ${pool} and v.key = ${key} and v.agent = ${agent} and v.run = ${run} and v.retracted_seq is null order by v.version`;
  const added: unknown[] = [];
  for (const row of own) {
    const before = await tx.get<VersionRow>`select ${VERSION_COLUMNS} from pool_versions v
      where v.pool = ${pool} and v.key = ${key} and v.version < ${row.version} and v.retracted_seq is null order by v.version desc limit 1`;
    const [value, base] = [await fullValue(store, tx, row), before && (await fullValue(store, tx, before))];
    if (Array.isArray(value)) added.push(...value.slice(Array.isArray(base) && isBeginning(base, value) ? base.length : 0));
  }
  return added;
}

/** Where the list had expired or was removed, it began anew. */
function isBeginning(base: readonly unknown[], value: readonly unknown[]): boolean {
  return base.length <= value.length && base.every((item, index) => canonicalJson(item) === canonicalJson(value[index]));
}

/** Each of them once, the last that is the same. */
function without(list: readonly unknown[], added: readonly unknown[]): unknown[] {
  const left = [...list];
  for (const item of added.toReversed()) {
    const text = canonicalJson(item);
    const place = left.findLastIndex((one) => canonicalJson(one) === text);
    if (place >= 0) left.splice(place, 1);
  }
  return left;
}

import type { Blame, Entry, LineageItem } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { Reads } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import { mayRead } from "./access.ts";
import { derivedFrom, descendants } from "./lineage.ts";
import type { EntryReads } from "./read-entries.ts";
import type { PoolRegistry } from "./registry.ts";
import { lineageOf, type VersionRow } from "./version-rows.ts";

const DESCENDANTS = 1_000;

/** Where a version came from, who saw it, and what became of it. What the asker may not read is counted, not named. */
export async function blameFor(store: Store, registry: PoolRegistry, entries: EntryReads, caller: Caller, entry: Entry): Promise<Blame> {
  const parents = await derivedFrom(store.read, entry);
  const children = await descendants(store.read, entry, DESCENDANTS);
  let hidden = 0;
  const named = async (rows: readonly VersionRow[]): Promise<LineageItem[]> => {
    const items: LineageItem[] = [];
    for (const row of rows) {
      if (await mayName(store.read, registry, caller, row)) items.push(lineageOf(row));
      else hidden++;
    }
    return items;
  };
  return {
    entry,
    derivedFrom: await named(parents),
    readBy: await entries.readers(caller, entry.pool, entry.key, entry.version),
    descendants: await named(children.rows),
    hidden,
    truncated: children.truncated,
  };
}

export async function mayName(
  reads: Reads,
  registry: PoolRegistry,
  caller: Caller,
  { pool, key }: { pool: string; key: string },
): Promise<boolean> {
  if (caller.kind === "operator" || caller.kind === "reader") return true;
  const row = await registry.row(reads, pool);
  if (!row) return false;
  const rules = await registry.rulesOf(reads, pool, row.revision);
  return registry.isOpenTo(caller, row, rules, row.now) && mayRead(caller, rules.of(key));
}

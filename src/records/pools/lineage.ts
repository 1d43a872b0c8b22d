import type { Reads } from "../../store/engine.ts";
import { MEMORY_OUTSIDE_RUN_MS } from "./heads.ts";
import { LINEAGE_COLUMNS, type VersionRow } from "./version-rows.ts";

const PIECE = 1_000;

export interface Descendants {
  /** Nearest first; the version itself is not among them. */
  readonly rows: readonly VersionRow[];
  readonly truncated: boolean;
}

interface Named {
  readonly pool: string;
  readonly key: string;
  readonly version: number;
}

export function nameOf({ pool, key, version }: Named): string {
  return JSON.stringify([pool, key, version]);
}

/**
 * What a version was made from: everything its author had read in that run before it wrote, and what its policy built upon.
 * Outside a run the reads of the hour before. Nothing is copied when a version is written: its mark is the author's newest read.
 */
export async function derivedFrom(reads: Reads, of: Named): Promise<VersionRow[]> {
  return reads.all<VersionRow>`
    select ${LINEAGE_COLUMNS} from pool_versions w join pool_reads r on r.agent = w.agent and r.run = w.run and r.id <= w.read_mark
        and r.version > 0 and (r.run <> '' or r.last_at >= w.at - ${MEMORY_OUTSIDE_RUN_MS})
      join pool_versions v on v.pool = r.pool and v.key = r.key and v.version = r.version
    where w.pool = ${of.pool} and w.key = ${of.key} and w.version = ${of.version}
    union
    select ${LINEAGE_COLUMNS} from pool_versions w join pool_versions v on v.pool = w.pool and v.key = w.key and v.version = w.base_version
    where w.pool = ${of.pool} and w.key = ${of.key} and w.version = ${of.version}
    order by 1, 2, 3`;
}

/** Everything that was made from a version, from what was made from it, and so on, across pools. */
export async function descendants(reads: Reads, of: Named, most: number): Promise<Descendants> {
  const visited = new Set([nameOf(of)]);
  const rows: VersionRow[] = [];
  const queue: Named[] = [of];
  for (let next = queue.shift(); next; next = queue.shift()) {
    for await (const piece of children(reads, next)) {
      for (const row of piece) {
        if (visited.has(nameOf(row))) continue;
        if (rows.length === most) return { rows, truncated: true };
        visited.add(nameOf(row));
        rows.push(row);
        queue.push(row);
      }
    }
  }
  return { rows, truncated: false };
}

/** By time, a piece at once: reading thousands of rows in one go would keep everything else waiting. */
async function* children(reads: Reads, { pool, key, version }: Named): AsyncGenerator<VersionRow[], void, void> {
  yield await reads.all<VersionRow>`select ${LINEAGE_COLUMNS} from pool_versions v
    where v.pool = ${pool} and v.key = ${key} and v.base_version = ${version} order by v.version`;
  for (let last: Named & { readonly at: number } = { at: -1, pool: "", key: "", version: 0 }; ; ) {
    const rows = await reads.all<VersionRow>`
      select ${LINEAGE_COLUMNS} from pool_reads r join pool_versions v on v.agent = r.agent and v.run = r.run and v.read_mark >= r.id
        and (r.run <> '' or v.at <= r.last_at + ${MEMORY_OUTSIDE_RUN_MS})
      where r.pool = ${pool} and r.key = ${key} and r.version = ${version} and v.value is not null
        and (v.at, v.pool, v.key, v.version) > (${last.at}, ${last.pool}, ${last.key}, ${last.version})
      order by v.at, v.pool, v.key, v.version limit ${PIECE}`;
    yield rows;
    if (rows.length < PIECE) return;
    last = rows.at(-1) as VersionRow;
  }
}

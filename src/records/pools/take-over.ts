import type { Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { countUsage, UNLIMITED, UsageChange } from "./usage.ts";
import { labelOf, VERSION_COLUMNS, type VersionRow } from "./version-rows.ts";
import { insertVersion } from "./write-entries.ts";

/**
 * Gives a run's pool what another's held, except for what these turns wrote and whatever was written upon that. Entries keep their version,
 * author and label; their note says where they come from. What their authors had read comes along, so that their lineage stays whole.
 */
export async function takeOverEntries(
  store: Store,
  tx: Tx,
  actor: string,
  from: string,
  to: string,
  without: readonly string[],
): Promise<void> {
  const rows = (
    await tx.all<VersionRow & { readonly expired: number }>`select ${VERSION_COLUMNS},
      case when v.expires_at is not null and v.expires_at <= now_ms() then 1 else 0 end as expired
    from pool_versions v join (
      select s.key, max(s.version) as version from pool_versions s
      left join (select key, min(version) as first from pool_versions where pool = ${from} and run in ${list(without)} group by key) as again
        on again.key = s.key
      where s.pool = ${from} and s.retracted_seq is null and (again.first is null or s.version < again.first) group by s.key
    ) as kept on kept.key = v.key and kept.version = v.version where v.pool = ${from} order by v.key`
  ).filter((row) => row.value !== null && row.expired === 0);
  if (rows.length === 0) return;
  const authors = [...new Set(rows.map(({ run }) => run))].filter((run) => run !== "");
  await tx.run`insert into pool_reads (pool, key, version, agent, run, step, external, shown, first_at, last_at)
    select ${to}, key, version, agent, run, step, external, shown, first_at, last_at from pool_reads
    where pool = ${from} and run in ${list(authors)} order by id`;
  const keys = rows.map(({ key, version, size, external }) => ({ key, version, size, label: labelOf(external) }));
  const [seq = 0] = await store.ledger.append(tx, { type: "pool.written", actor, subject: ["pool", to], data: { keys, from } });
  const usage = new UsageChange();
  for (const row of rows) {
    const note = `taken over from ${from}${row.note === null ? "" : `: ${row.note}`}`;
    const bytes = row.blob === null ? undefined : await store.blobs.get(row.blob, tx);
    const blob = bytes ? await store.blobs.put(tx, ["pool", to], bytes) : null;
    const mark = await tx.get<{
      mark: number | null;
    }>`select max(id) as mark from pool_reads where agent = ${row.agent} and run = ${row.run}`;
    await insertVersion(tx, { ...row, pool: to, blob, note, seq }, row.run === "" ? 0 : (mark?.mark ?? 0), null);
    await tx.run`insert into pool_keys (pool, key, last_version, current_version, expires_at, size, agent)
      values (${to}, ${row.key}, ${row.version}, ${row.version}, ${row.expires_at}, ${row.size}, ${row.agent})`;
    usage.add(row.agent, row.size);
  }
  await countUsage(tx, to, UNLIMITED, usage);
}

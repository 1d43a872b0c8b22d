import type { Entry } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import { noEntry, noVersion } from "./access.ts";
import { lockHeads } from "./heads.ts";
import type { PoolRegistry } from "./registry.ts";
import { entryOf, VERSION_COLUMNS, type VersionRow } from "./version-rows.ts";

/** A person vouches for a version: it is trusted from now on, and so is what is made from it afterwards. What was made before is not. */
export async function endorseVersion(
  store: Store,
  registry: PoolRegistry,
  tx: Tx,
  caller: Caller,
  pool: string,
  key: string,
  version: number | undefined,
  reason: string,
): Promise<Entry> {
  if (caller.kind !== "operator") throw new Failure("request.forbidden", "only an operator may endorse an entry");
  await registry.find(tx, caller, pool);
  await lockHeads(store, tx, [{ pool, key }]);
  const head = await tx.get<{
    current_version: number | null;
  }>`select current_version from pool_keys where pool = ${pool} and key = ${key}`;
  const chosen = version ?? head?.current_version ?? undefined;
  if (chosen === undefined) throw noEntry(pool, key);
  const row = await tx.get<VersionRow>`select ${VERSION_COLUMNS} from pool_versions v
    where v.pool = ${pool} and v.key = ${key} and v.version = ${chosen} and v.value is not null`;
  if (!row) throw noVersion(pool, key, chosen);
  if (row.external === 0) return entryOf(row);
  await tx.run`update pool_versions set external = 0, endorsed_by = ${caller.name}, endorse_reason = ${reason}
    where pool = ${pool} and key = ${key} and version = ${chosen}`;
  await tx.run`update pool_reads set external = 0 where pool = ${pool} and key = ${key} and version = ${chosen}`;
  await store.ledger.append(tx, {
    type: "pool.endorsed",
    actor: caller.name,
    subject: ["pool", pool],
    data: { keys: [{ key, version: chosen, label: "trusted" }] },
  });
  return entryOf({ ...row, external: 0 });
}

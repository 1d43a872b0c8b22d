import type { VersionRef } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import { mayRead, mayWrite, noEntry, noVersion } from "./access.ts";
import { mayName } from "./blame.ts";
import { byName, lockHeads } from "./heads.ts";
import { descendants, nameOf } from "./lineage.ts";
import type { PoolRegistry } from "./registry.ts";
import { countUsage, UNLIMITED, UsageChange } from "./usage.ts";
import { LINEAGE_COLUMNS, type VersionRow } from "./version-rows.ts";

const MOST_DESCENDANTS = 10_000;

export interface Retraction {
  /** What the caller may see of it. */
  readonly retracted: readonly VersionRef[];
  readonly hidden: number;
  /** Descendants in keys that the caller may not write: an operator's to withdraw. */
  readonly left: number;
  readonly rerun: readonly { readonly agent: string; readonly run: string | null; readonly step: string | null }[];
  /** Agents and guests who have written or read any of it, to be told: each of what was its own to see. */
  readonly concerned: ReadonlyMap<string, readonly VersionRef[]>;
}

/**
 * Withdraws a version and what was made from it: marked, never erased, and of each key the newest version that stands becomes
 * current again. An operator withdraws everything; an author its own version, and what was made from it in keys that it may
 * write: with its reach across pools it could otherwise change what is not its own.
 */
export async function retractVersion(
  store: Store,
  registry: PoolRegistry,
  tx: Tx,
  caller: Caller,
  target: VersionRef,
  reason: string,
): Promise<Retraction> {
  let { standing, left } = await toWithdraw(registry, tx, caller, target);
  if (store.kind !== "sqlite") {
    await lockHeads(store, tx, standing);
    // Until they were held, others could withdraw the same, and write more from it.
    ({ standing, left } = await toWithdraw(registry, tx, caller, target));
    await lockHeads(store, tx, standing);
  }
  await withdraw(store, tx, caller, standing, reason);
  const visible: VersionRef[] = [];
  for (const row of standing) {
    if (await mayName(tx, registry, caller, row)) visible.push({ pool: row.pool, key: row.key, version: row.version });
  }
  const readers = await readersOf(tx, standing);
  return {
    retracted: visible,
    hidden: standing.length - visible.length,
    left,
    rerun: toRepeat(standing, readers),
    concerned: byIdentity([...standing, ...readers].filter(({ agent }) => agent !== caller.name)),
  };
}

async function toWithdraw(
  registry: PoolRegistry,
  tx: Tx,
  caller: Caller,
  target: VersionRef,
): Promise<{ readonly standing: readonly VersionRow[]; readonly left: number }> {
  const origin = await authorised(registry, tx, caller, target);
  const family = await descendants(tx, origin, MOST_DESCENDANTS);
  if (family.truncated)
    throw new Failure("request.too_large", `more than ${MOST_DESCENDANTS} versions were made from this one; retract later ones first`);
  const rows: VersionRow[] = [origin];
  let left = 0;
  for (const row of family.rows) {
    if (await mayWithdraw(registry, tx, caller, row)) rows.push(row);
    else left++;
  }
  return { standing: rows.filter((row) => row.retracted_at === null), left };
}

async function authorised(registry: PoolRegistry, tx: Tx, caller: Caller, { pool, key, version }: VersionRef): Promise<VersionRow> {
  const known = await registry.find(tx, caller, pool);
  if (!mayRead(caller, known.rules.of(key))) throw noEntry(pool, key);
  const row = await tx.get<VersionRow>`select ${LINEAGE_COLUMNS} from pool_versions v
    where v.pool = ${pool} and v.key = ${key} and v.version = ${version} and v.value is not null`;
  if (!row) throw noVersion(pool, key, version);
  const isAuthor = (caller.kind === "agent" || caller.kind === "guest") && row.agent === caller.name;
  if (caller.kind !== "operator" && !isAuthor)
    throw new Failure("request.forbidden", `only an operator or the author of version ${version} may retract it`);
  return row;
}

async function mayWithdraw(registry: PoolRegistry, tx: Tx, caller: Caller, { pool, key }: VersionRow): Promise<boolean> {
  if (caller.kind === "operator") return true;
  const row = await registry.row(tx, pool);
  return row?.state === "open" && mayWrite(caller, (await registry.rulesOf(tx, pool, row.revision)).of(key));
}

interface Standing {
  readonly version: number;
  readonly expires_at: number | null;
  readonly size: number;
  readonly agent: string;
  readonly tombstone: number;
}

async function withdraw(store: Store, tx: Tx, caller: Caller, rows: readonly VersionRow[], reason: string): Promise<void> {
  const gone = new Set(rows.map(nameOf));
  const usages = new Map<string, UsageChange>();
  for (const [pool, inPool] of Map.groupBy(rows.toSorted(byName), (row) => row.pool)) {
    const usage = new UsageChange();
    const successors = new Map<string, Standing | undefined>();
    for (const [key, versions] of Map.groupBy(inPool, (row) => row.key))
      successors.set(key, await successor(tx, pool, key, gone, versions.length));
    const keys = inPool.map(({ key, version }) => ({ key, version, current: successors.get(key)?.version ?? null }));
    const [seq = 0] = await store.ledger.append(tx, {
      type: "pool.retracted",
      actor: caller.name,
      subject: ["pool", pool],
      data: { keys },
    });
    for (const { key, version } of inPool) {
      await tx.run`update pool_versions set retracted_seq = ${seq}, retracted_at = now_ms(), retracted_by = ${caller.name}, retract_reason = ${reason}
        where pool = ${pool} and key = ${key} and version = ${version} and retracted_seq is null`;
    }
    for (const [key, next] of successors) await makeCurrent(tx, pool, key, next, usage);
    usages.set(pool, usage);
  }
  for (const [pool, usage] of usages) await countUsage(tx, pool, UNLIMITED, usage);
}

/** The newest version that stands when those are gone; undefined when it is a tombstone, or there is none. */
async function successor(tx: Tx, pool: string, key: string, gone: ReadonlySet<string>, withdrawn: number): Promise<Standing | undefined> {
  const candidates = await tx.all<Standing>`select version, expires_at, size, agent, case when value is null then 1 else 0 end as tombstone
    from pool_versions where pool = ${pool} and key = ${key} and retracted_seq is null order by version desc limit ${withdrawn + 1}`;
  const next = candidates.find(({ version }) => !gone.has(nameOf({ pool, key, version })));
  return next?.tombstone === 0 ? next : undefined;
}

async function makeCurrent(tx: Tx, pool: string, key: string, next: Standing | undefined, usage: UsageChange): Promise<void> {
  const before = await tx.get<VersionRow>`select ${LINEAGE_COLUMNS} from pool_keys h
    join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version where h.pool = ${pool} and h.key = ${key}`;
  if (before?.version === next?.version) return;
  usage.free(before);
  if (next) usage.add(next.agent, next.size);
  await tx.run`update pool_keys set current_version = ${next?.version ?? null}, expires_at = ${next?.expires_at ?? null},
      size = ${next?.size ?? null}, agent = ${next?.agent ?? null}
    where pool = ${pool} and key = ${key}`;
}

interface ReaderRow extends VersionRef {
  readonly agent: string;
  readonly run: string;
  readonly step: string | null;
}

async function readersOf(tx: Tx, rows: readonly VersionRow[]): Promise<ReaderRow[]> {
  const readers: ReaderRow[] = [];
  for (const { pool, key, version } of rows) {
    readers.push(
      ...(await tx.all<ReaderRow>`select pool, key, version, agent, run, step from pool_reads where pool = ${pool} and key = ${key} and version = ${version}`),
    );
  }
  return readers;
}

/** Whoever wrote any of it, and every turn that has read it. */
function toRepeat(rows: readonly VersionRow[], readers: readonly ReaderRow[]): Retraction["rerun"] {
  const concerned = [...rows, ...readers.filter((reader) => reader.run !== "")];
  const distinct = new Map(
    concerned.map(({ agent, run, step }) => [JSON.stringify([agent, run, step]), { agent, run: run === "" ? null : run, step }]),
  );
  return [...distinct.values()];
}

function byIdentity(rows: readonly (VersionRef & { readonly agent: string })[]): Map<string, VersionRef[]> {
  const concerned = new Map<string, Map<string, VersionRef>>();
  for (const { agent, pool, key, version } of rows) {
    const known = concerned.get(agent) ?? new Map<string, VersionRef>();
    concerned.set(agent, known.set(nameOf({ pool, key, version }), { pool, key, version }));
  }
  return new Map([...concerned].map(([agent, versions]) => [agent, [...versions.values()]]));
}

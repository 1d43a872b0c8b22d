import { type Pool, type PoolDefinition, type PoolsConfig, poolDefinition } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import { canonicalJson } from "../../kernel/canonical-json.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import { isVisible, mayWrite, noPool } from "./access.ts";
import { PoolRules } from "./rules.ts";

const REMEMBERED_POOLS = 1_000;
/** Whoever reconciles or makes pools does so for all of them; the name is no pool's. */
const GATEWAY = "guildhall";
/** Names with a colon are the gateway's own. */
export const RUN_POOL = "run:";

/** Whether a pool can be used. */
export interface PoolStanding {
  readonly name: string;
  readonly state: "open" | "sealed" | "retired";
  readonly remove_at: number | null;
}

export interface PoolRow extends PoolStanding {
  readonly kind: "config" | "made" | "run";
  readonly revision: number;
  readonly created_at: number;
  readonly sealed_at: number | null;
  readonly now: number;
}

/** One revision of a pool: its number stands for all of this, for ever. */
export interface PoolRevision extends PoolStanding {
  readonly revision: number;
  readonly rules: PoolRules;
}

export interface NewPoolRow {
  readonly name: string;
  readonly kind: "made" | "run";
  readonly runId?: string;
  readonly definition: PoolDefinition;
}

export interface KnownPool {
  readonly row: PoolRow;
  readonly rules: PoolRules;
}

/**
 * Which pools there are, and what holds in them.
 *
 *   config: open ⇄ retired (left the config: kept, for operators only)
 *   made:   open            (becomes the config's when the config names it)
 *   run:    open ⇄ sealed (no more writes) → removed, after its time
 */
export class PoolRegistry {
  readonly #store: Store;
  /** By name, the newest that was met. */
  readonly #revisions = new Map<string, PoolRevision>();
  /** What an open transaction has defined itself: if it is taken back, its number may be given to another definition. */
  readonly #uncommitted = new WeakMap<Reads, Set<string>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The pool as the caller may see it; a pool it may not read is not there. */
  async find(reads: Reads, caller: Caller, name: string): Promise<KnownPool> {
    const row = await this.row(reads, name);
    if (!row) throw noPool(name);
    const known = { row, rules: await this.rulesOf(reads, name, row.revision) };
    if (!this.isOpenTo(caller, row, known.rules, row.now)) throw noPool(name);
    return known;
  }

  isOpenTo(caller: Caller, pool: PoolStanding, rules: PoolRules, now: number): boolean {
    if (pool.remove_at !== null && pool.remove_at <= now) return false;
    if (isOfRun(pool.name) && (caller.kind === "agent" || caller.kind === "guest") && caller.pool !== pool.name) return false;
    if (pool.state === "retired" && caller.kind !== "operator" && caller.kind !== "reader") return false;
    return isVisible(caller, rules);
  }

  row(reads: Reads, name: string): Promise<PoolRow | undefined> {
    return reads.get<PoolRow>`select name, kind, revision, state, created_at, sealed_at, remove_at, now_ms() as now
      from pools where name = ${name}`;
  }

  /** What is remembered of this revision; asked first where even a promise that is kept at once is too much. */
  remembered(name: string, revision: number): PoolRevision | undefined {
    const known = this.#revisions.get(name);
    return known?.revision === revision ? known : undefined;
  }

  async revisionOf(reads: Reads, name: string, revision: number): Promise<PoolRevision> {
    const known = this.remembered(name, revision);
    if (known) return known;
    const row = await reads.get<PoolStanding & { definition: string; revision: number }>`
      select name, definition, revision, state, remove_at from pools where name = ${name}`;
    if (!row) throw noPool(name);
    const rules = new PoolRules(poolDefinition.parse(JSON.parse(row.definition)));
    const read = { name, revision: row.revision, state: row.state, remove_at: row.remove_at, rules };
    if (this.#uncommitted.get(reads)?.has(name)) return read;
    this.#revisions.delete(name);
    if (this.#revisions.size >= REMEMBERED_POOLS) this.#revisions.delete(this.#revisions.keys().next().value as string);
    this.#revisions.set(name, read);
    return read;
  }

  async rulesOf(reads: Reads, name: string, revision: number): Promise<PoolRules> {
    return (await this.revisionOf(reads, name, revision)).rules;
  }

  async list(caller: Caller, reads: Reads = this.#store.read): Promise<Pool[]> {
    const rows = await reads.all<PoolRow>`select name, kind, revision, state, created_at, sealed_at, remove_at, now_ms() as now
      from pools order by name`;
    const pools: Pool[] = [];
    for (const row of rows) {
      const rules = await this.rulesOf(reads, row.name, row.revision).catch(() => undefined);
      if (rules && this.isOpenTo(caller, row, rules, row.now)) pools.push(this.describe(caller, { row, rules }));
    }
    return pools;
  }

  describe(caller: Caller, { row, rules }: KnownPool): Pool {
    return {
      name: row.name,
      kind: row.kind,
      state: row.state,
      createdAt: row.created_at,
      sealedAt: row.sealed_at,
      removeAt: row.remove_at,
      writable: row.state === "open" && rules.all().some((key) => mayWrite(caller, key)),
    };
  }

  async create(tx: Tx, actor: string, pool: NewPoolRow): Promise<void> {
    // Refuses schemas that cannot be used.
    new PoolRules(pool.definition);
    const known = await tx.get`select 1 from pools where name = ${pool.name}`;
    if (known) throw exists(pool.name);
    const revision = await this.#tell(tx, "pool.created", actor, pool.name, { kind: pool.kind });
    const added = await tx.run`insert into pools (name, kind, run_id, definition, revision, state, created_at)
      values (${pool.name}, ${pool.kind}, ${pool.runId ?? null}, ${canonicalJson(pool.definition)}, ${revision}, 'open', now_ms())
      on conflict (name) do nothing`;
    if (added === 0) throw exists(pool.name);
    await tx.run`insert into pool_usage (pool, agent, bytes, entries) values (${pool.name}, '', 0, 0) on conflict (pool, agent) do nothing`;
  }

  /** No more writes from now on; all of it goes after the retention time. */
  async seal(tx: Tx, actor: string, name: string, retentionMs: number): Promise<void> {
    const open =
      await tx.get`select 1 from pools where name = ${name} and kind = 'run' and state = 'open' ${this.#store.dialect.forUpdate}`;
    if (!open) return;
    const revision = await this.#tell(tx, "pool.sealed", actor, name, {});
    await tx.run`update pools set state = 'sealed', revision = ${revision}, sealed_at = now_ms(),
        remove_at = now_ms() + cast(${Math.round(retentionMs)} as bigint) where name = ${name}`;
  }

  /** Writes are possible again, and it stays. False: it is gone, or was not sealed. */
  async reopen(tx: Tx, actor: string, name: string): Promise<boolean> {
    const sealed = await tx.get`select 1 from pools where name = ${name} and kind = 'run' and state = 'sealed'
      and (remove_at is null or remove_at > now_ms()) ${this.#store.dialect.forUpdate}`;
    if (!sealed) return false;
    const revision = await this.#tell(tx, "pool.changed", actor, name, { kind: "run", state: "open" });
    await tx.run`update pools set state = 'open', revision = ${revision}, sealed_at = null, remove_at = null where name = ${name}`;
    return true;
  }

  check(config: PoolsConfig): void {
    for (const [name, definition] of Object.entries(config)) {
      try {
        new PoolRules(definition);
      } catch (error) {
        throw new Failure("config.invalid", `pools.${name}: ${(error as Error).message}`, { cause: error, details: { pool: name } });
      }
    }
  }

  /** Makes the table say what the config says. Safe on several nodes: whoever comes second finds it done. */
  async reconcileIn(tx: Tx, config: PoolsConfig): Promise<void> {
    const wanted = new Map(Object.entries(config));
    const known = new Map(
      (
        await tx.all<{ name: string; kind: string; state: string; definition: string }>`select name, kind, state, definition
          from pools where kind <> 'run' order by name ${this.#store.dialect.forUpdate}`
      ).map((row) => [row.name, row]),
    );
    for (const [name, definition] of wanted) {
      const row = known.get(name);
      const text = canonicalJson(definition);
      if (row?.definition === text && row.kind === "config" && row.state === "open") continue;
      const revision = await this.#tell(tx, row ? "pool.changed" : "pool.created", GATEWAY, name, { kind: "config" });
      await tx.run`insert into pools (name, kind, definition, revision, state, created_at)
        values (${name}, 'config', ${text}, ${revision}, 'open', now_ms())
        on conflict (name) do update set kind = 'config', definition = excluded.definition, revision = excluded.revision, state = 'open'`;
      await tx.run`insert into pool_usage (pool, agent, bytes, entries) values (${name}, '', 0, 0) on conflict (pool, agent) do nothing`;
    }
    for (const row of known.values()) {
      if (row.kind !== "config" || row.state === "retired" || wanted.has(row.name)) continue;
      const revision = await this.#tell(tx, "pool.changed", GATEWAY, row.name, { kind: "config", state: "retired" });
      await tx.run`update pools set state = 'retired', revision = ${revision} where name = ${row.name}`;
    }
  }

  async #tell(tx: Tx, type: "pool.created" | "pool.changed" | "pool.sealed", actor: string, name: string, data: object): Promise<number> {
    this.#uncommitted.set(tx, (this.#uncommitted.get(tx) ?? new Set()).add(name));
    const [seq] = await this.#store.ledger.append(tx, { type, actor, subject: ["pool", name], data });
    return seq as number;
  }
}

/** The working memory of one run: for its own steps, whoever else its lists name. */
function isOfRun(name: string): boolean {
  return name.startsWith(RUN_POOL);
}

function exists(name: string): Failure {
  return new Failure("pool.exists", `there is a pool "${name}" already`);
}

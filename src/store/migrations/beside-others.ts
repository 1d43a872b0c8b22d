import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../kernel/failure.ts";
import type { Engine, Reads } from "../engine.ts";
import type { Migration } from "./migration.ts";

/**
 * Programs of two versions on one database, while one follows the other. What a newer one has added leaves an older one as it was
 * (`additive`); whatever does more waits until the older ones are gone, and keeps them from coming back.
 */
export interface Applied {
  readonly version: number;
  readonly statement: number;
  readonly checksum: string;
  readonly is_additive: number;
}

/** How often those that may be dead are looked at again. */
const LOOK_MS = 500;

/** What was done to this database; nothing where it is a new one. Nothing is changed. */
export async function readApplied(reads: Reads, dialect: "sqlite" | "postgres"): Promise<Applied[]> {
  if (!(await hasTable(reads, dialect, "migrations"))) return [];
  if (await saysWhatIsAdditive(reads, dialect))
    return reads.all<Applied>`select version, statement, checksum, is_additive from migrations order by version, statement`;
  return reads.all<Applied>`select version, statement, checksum, 0 as is_additive from migrations order by version, statement`;
}

/** Programs up to 0.1.0 made the table without it. */
export async function saysWhatIsAdditive(reads: Reads, dialect: "sqlite" | "postgres"): Promise<boolean> {
  const row =
    dialect === "sqlite"
      ? await reads.get`select 1 from pragma_table_info('migrations') where name = 'is_additive'`
      : await reads.get`select 1 from information_schema.columns
          where table_schema = current_schema() and table_name = 'migrations' and column_name = 'is_additive'`;
  return row !== undefined;
}

/** Answers the schema of the database, which is a newer one than ours where everything newer is additive; refuses all else. */
export function refuseNewer(applied: readonly Applied[], migrations: readonly Migration[]): number {
  const ours = migrations.at(-1)?.version ?? 0;
  const theirs = applied.at(-1)?.version ?? 0;
  const breaking = applied.find(({ version, is_additive }) => version > ours && is_additive === 0);
  if (breaking)
    throw new Failure(
      "store.newer_schema",
      `the database has schema ${theirs}, this program knows up to ${ours} and cannot work beside it`,
    );
  return theirs;
}

interface Alive {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly url: string;
  readonly seen_at: number;
}

/**
 * No node joins before it has migrated: whoever is alive while this is not done is of a version before. One that is heard of again is alive; one
 * that died a moment ago is waited for until its time is over.
 */
export async function untilAlone(engine: Engine, migration: Migration, isDone: () => Promise<boolean>): Promise<void> {
  const first = await alive(engine);
  // Those that are alive are looked at before what is done: one that started together with us has done it before it joined.
  for (let left = first; left.length > 0 && !(await isDone()); left = await alive(engine)) {
    const heardOf = left.filter(({ id, seen_at }) => first.find((each) => each.id === id)?.seen_at !== seen_at);
    if (heardOf.length > 0) throw stillAtWork(migration, heardOf);
    await sleep(LOOK_MS);
  }
}

/** Within the transaction of a statement: one may have come since. */
export async function refuseUnlessAlone(engine: Engine, reads: Reads, migration: Migration): Promise<void> {
  const nodes = await alive(engine, reads);
  if (nodes.length > 0) throw stillAtWork(migration, nodes);
}

async function alive(engine: Engine, reads: Reads = engine.reads): Promise<Alive[]> {
  if (!(await hasTable(reads, engine.dialect.name, "nodes"))) return [];
  return reads.all<Alive>`select id, name, version, url, seen_at from nodes where seen_at + lease_ms > now_ms() order by name`;
}

function stillAtWork(migration: Migration, nodes: readonly Alive[]): Failure {
  const names = nodes.map(({ name, version, url }) => `${name} (${version}, ${url})`).join(", ");
  return new Failure(
    "store.older_nodes",
    `schema ${migration.version} (${migration.name}) cannot be made while nodes of an older version are at work: ${names}`,
  );
}

async function hasTable(reads: Reads, dialect: "sqlite" | "postgres", table: string): Promise<boolean> {
  const row =
    dialect === "sqlite"
      ? await reads.get`select 1 from sqlite_schema where name = ${table}`
      : await reads.get`select 1 from pg_tables where schemaname = current_schema() and tablename = ${table}`;
  return row !== undefined;
}

import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { noCrashPoints } from "../kernel/crash-points.ts";
import { Failure } from "../kernel/failure.ts";
import { openBackup } from "./backup.ts";
import { MIGRATIONS, migrate } from "./migrations/migrate.ts";
import { load } from "./restore.ts";
import { openEngine, openStore, type StoreLocation, type StoreOptions } from "./store.ts";

/**
 * Restores a backup into an empty place, from either database into either. It is loaded beside the target, at the schema it was
 * made with, and takes the target's name only when it is whole: stopped half-way, the target is as it was.
 */
export async function restoreBackup(location: StoreLocation, file: string, options: StoreOptions = {}): Promise<number> {
  const source = await openBackup(file);
  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  if (source.header.schema > newest) {
    throw new Failure("store.newer_schema", `${file} has schema ${source.header.schema}, this program knows up to ${newest}`);
  }
  const staging = location.startsWith("sqlite:") ? sqliteStaging(location) : postgresStaging(location);
  await refuseUnlessEmpty(location, staging.exists, options);
  await staging.clear();
  const engine = await openEngine(staging.location, options);
  let rows: number;
  try {
    await migrate(engine, noCrashPoints, MIGRATIONS.slice(0, MIGRATIONS.findIndex((entry) => entry.version === source.header.schema) + 1));
    rows = await load(engine, source);
    await migrate(engine, noCrashPoints);
  } finally {
    await engine.close();
  }
  await staging.takePlace();
  const store = await openStore(location, options);
  await store.transact("restored", (tx) =>
    store.ledger.append(tx, { type: "store.restored", actor: "operator", subject: ["store"], data: { takenAt: source.header.at, rows } }),
  );
  await store.close();
  return rows;
}

async function refuseUnlessEmpty(location: StoreLocation, exists: () => Promise<boolean>, options: StoreOptions): Promise<void> {
  if (!(await exists())) return;
  const store = await openStore(location, options);
  const used = await store.read.get`select 1 from ledger union all select 1 from work limit 1`;
  await store.close();
  if (used) throw notEmpty();
}

function notEmpty(): Failure {
  return new Failure("backup.target_not_empty", "the place to restore into already holds data");
}

interface Staging {
  readonly location: StoreLocation;
  exists(): Promise<boolean>;
  clear(): Promise<void>;
  takePlace(): Promise<void>;
}

function sqliteStaging(location: StoreLocation): Staging {
  const path = location.slice("sqlite:".length);
  const beside = `${path}.restoring`;
  const remove = async (base: string): Promise<void> => {
    for (const suffix of ["", "-wal", "-shm"]) await rm(`${base}${suffix}`, { force: true });
  };
  return {
    location: `sqlite:${beside}`,
    exists: async () => existsSync(path),
    clear: () => remove(beside),
    // The write-ahead log was emptied when the last connection closed; a log that the old file left must not be applied to the new one.
    takePlace: async () => {
      if (existsSync(`${beside}-wal`)) throw new Failure("internal.bug", `${beside} was not closed whole`);
      for (const suffix of ["-wal", "-shm"]) await rm(`${path}${suffix}`, { force: true });
      await rename(beside, path);
    },
  };
}

function postgresStaging(location: StoreLocation): Staging {
  const url = new URL(location);
  const schema = url.searchParams.get("schema") ?? "guildhall";
  const beside = `${schema}_restoring`;
  url.searchParams.set("schema", beside);
  const run = async (statements: string): Promise<{ rows: unknown[] }> => {
    const [{ default: pg }, { parsePostgresUrl }] = await Promise.all([import("pg"), import("./postgres/postgres-url.ts")]);
    const client = new pg.Client(parsePostgresUrl(location).config);
    try {
      await client.connect();
      return await client.query(statements);
    } finally {
      await client.end();
    }
  };
  return {
    location: url.toString(),
    exists: async () => (await run(`select 1 from pg_namespace where nspname = '${schema}'`)).rows.length > 0,
    clear: async () => void (await run(`drop schema if exists "${beside}" cascade`)),
    // Another node may have begun to use the empty place meanwhile: looked at once more, with everybody held off.
    takePlace: async () => {
      await run(`begin;
        do $$ begin
          if to_regclass('"${schema}".ledger') is not null then
            lock table "${schema}".ledger, "${schema}".work in access exclusive mode;
            if exists (select 1 from "${schema}".ledger union all select 1 from "${schema}".work) then
              raise exception using errcode = 'GH001', message = 'not empty';
            end if;
          end if;
        end $$;
        drop schema if exists "${schema}" cascade; alter schema "${beside}" rename to "${schema}"; commit`).catch((error: unknown) => {
        throw (error as { code?: string }).code === "GH001" ? notEmpty() : error;
      });
    },
  };
}

import { existsSync } from "node:fs";
import { systemClock } from "../kernel/clock.ts";
import { Failure } from "../kernel/failure.ts";
import type { Reads } from "./engine.ts";
import { MIGRATIONS } from "./migrations/migrate.ts";
import { openEngine, type StoreLocation } from "./store.ts";

export interface StoreLook {
  /** False: it is made at the first start. */
  readonly exists: boolean;
  /** The last migration it has had; 0 for none. */
  readonly schema: number;
  /** The last one this program knows. */
  readonly newest: number;
}

/** Looks at a store without changing it, whether or not a daemon runs on it. What a start would refuse is refused here too. */
export async function inspectStore(location: StoreLocation): Promise<StoreLook> {
  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  const { exists, schema } = location.startsWith("sqlite:")
    ? await lookAtFile(location.slice("sqlite:".length))
    : await lookAtServer(location);
  if (schema > newest) throw new Failure("store.newer_schema", `the database has schema ${schema}, this program knows up to ${newest}`);
  return { exists, schema, newest };
}

/** Reads of a store of the newest schema, without changing it, whether or not a daemon runs on it. */
export async function glanceInto<T>(location: StoreLocation, body: (reads: Reads) => Promise<T>): Promise<T> {
  if (location.startsWith("sqlite:")) {
    const { Connection } = await import("./sqlite/connection.ts");
    const connection = new Connection({ path: location.slice("sqlite:".length), readOnly: true, clock: systemClock });
    try {
      return await body({
        all: async (strings, ...values) => connection.all(strings, values),
        get: async (strings, ...values) => connection.get(strings, values),
      });
    } finally {
      connection.close();
    }
  }
  const engine = await openEngine(location, {});
  try {
    return await body(engine.reads);
  } finally {
    await engine.close();
  }
}

async function lookAtFile(path: string): Promise<{ readonly exists: boolean; readonly schema: number }> {
  if (!existsSync(path)) return { exists: false, schema: 0 };
  const [{ inspectDatabase }, { Connection }] = await Promise.all([import("./sqlite/open-database.ts"), import("./sqlite/connection.ts")]);
  inspectDatabase(path, systemClock);
  const connection = new Connection({ path, readOnly: true, clock: systemClock });
  try {
    const known = connection.db.prepare("select 1 from sqlite_schema where name = 'migrations'").get();
    const last = known && connection.db.prepare("select max(version) as version from migrations").get();
    return { exists: true, schema: Number(last?.version ?? 0) };
  } finally {
    connection.close();
  }
}

async function lookAtServer(location: StoreLocation): Promise<{ readonly exists: boolean; readonly schema: number }> {
  const engine = await openEngine(location, {});
  try {
    const reads: Reads = engine.reads;
    const known = await reads.get`select 1 from pg_tables where schemaname = current_schema() and tablename = 'migrations'`;
    if (!known) return { exists: false, schema: 0 };
    const last = await reads.get<{ version: number | null }>`select max(version) as version from migrations`;
    return { exists: true, schema: Number(last?.version ?? 0) };
  } finally {
    await engine.close();
  }
}

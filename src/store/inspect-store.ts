import { existsSync } from "node:fs";
import { systemClock } from "../kernel/clock.ts";
import type { Reads } from "./engine.ts";
import { type Applied, readApplied, refuseNewer } from "./migrations/beside-others.ts";
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
  const applied = location.startsWith("sqlite:") ? await lookAtFile(location.slice("sqlite:".length)) : await lookAtServer(location);
  return { exists: applied !== null, schema: refuseNewer(applied ?? [], MIGRATIONS), newest };
}

/** Reads of a store that has all of our schema, without changing it, whether or not a daemon runs on it. */
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

async function lookAtFile(path: string): Promise<Applied[] | null> {
  if (!existsSync(path)) return null;
  const { inspectDatabase } = await import("./sqlite/open-database.ts");
  inspectDatabase(path, systemClock);
  return glanceInto(`sqlite:${path}`, (reads) => readApplied(reads, "sqlite"));
}

async function lookAtServer(location: StoreLocation): Promise<Applied[] | null> {
  const applied = await glanceInto(location, (reads) => readApplied(reads, "postgres"));
  return applied.length === 0 ? null : applied;
}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { inject } from "vitest";
import type { Clock } from "../src/kernel/clock.ts";
import { openStore, type Store, type StoreOptions } from "../src/store/store.ts";

/** One place to keep a store, opened as often as a test likes (several at once are several nodes), with a clock the test can move. */
export interface StorePlace {
  readonly kind: "sqlite" | "postgres";
  readonly location: string;
  open(options?: StoreOptions): Promise<Store>;
  /** Moves the database's clock forward. */
  elapse(ms: number): Promise<void>;
  /** Runs SQL past the store, as an intruder or an older program would. */
  tamper(statement: string): Promise<Record<string, unknown>[]>;
  remove(): Promise<void>;
}

let schemas = 0;

export function sqlitePlace(): StorePlace {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-store-"));
  const path = join(folder, "state.db");
  let offset = 0;
  const clock: Clock = { now: () => Date.now() + offset };
  const opened: Store[] = [];
  return {
    kind: "sqlite",
    location: `sqlite:${path}`,
    open: async (options) => {
      const store = await openStore(`sqlite:${path}`, { clock, ...options });
      opened.push(store);
      return store;
    },
    elapse: async (ms) => {
      offset += ms;
    },
    tamper: async (statement) => {
      const { DatabaseSync } = await import("node:sqlite");
      const db = new DatabaseSync(path, { timeout: 5_000 });
      try {
        return db.prepare(statement).all() as Record<string, unknown>[];
      } finally {
        db.close();
      }
    },
    remove: async () => {
      for (const store of opened) await store.close().catch(() => {});
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function postgresPlace(server: string = inject("postgresUrl")): StorePlace {
  const schema = `test_${process.pid}_${Math.floor(Math.random() * 1e9)}_${schemas++}`;
  const url = new URL(server);
  url.searchParams.set("schema", schema);
  let offset = 0;
  const opened: Store[] = [];
  const tamper = async (statement: string): Promise<Record<string, unknown>[]> => {
    const client = new pg.Client(server);
    await client.connect();
    try {
      await client.query(`set search_path to "${schema}"`);
      return (await client.query(statement)).rows;
    } finally {
      await client.end();
    }
  };
  return {
    kind: "postgres",
    location: url.toString(),
    open: async (options) => {
      const store = await openStore(url.toString(), options);
      opened.push(store);
      return store;
    },
    elapse: async (ms) => {
      offset += ms;
      await tamper(`create or replace function now_ms() returns bigint language sql volatile parallel safe
        as $$ select floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + ${offset} $$`);
    },
    tamper,
    remove: async () => {
      for (const store of opened) await store.close().catch(() => {});
      await tamper(`drop schema if exists "${schema}" cascade; drop schema if exists "${schema}_restoring" cascade`);
    },
  };
}

export const PLACES = [
  ["SQLite", sqlitePlace],
  ["PostgreSQL", postgresPlace],
] as const;

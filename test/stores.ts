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

/** In every database that is copied from the template (global-setup.ts). */
const TEMPLATE_SCHEMA = "guildhall";

/**
 * What is opened first is a copy of a database that was migrated once, which takes a tenth of the time. Whoever asks for the location first, or
 * brings a server of his own, gets a schema in which there is nothing yet.
 */
export function postgresPlace(server?: string): StorePlace {
  const name = `test_${process.pid}_${Math.floor(Math.random() * 1e9)}_${schemas++}`;
  const empty = new URL(server ?? inject("postgresUrl"));
  empty.searchParams.set("schema", name);
  const copy = new URL(empty);
  copy.pathname = `/${name}`;
  copy.searchParams.set("schema", TEMPLATE_SCHEMA);
  let url = server === undefined ? undefined : empty;
  let made: Promise<unknown> | undefined;
  let offset = 0;
  const opened: Store[] = [];
  const asAdministrator = (statement: string) => query(server ?? inject("postgresUrl"), statement);
  const chosen = async (): Promise<URL> => {
    url ??= copy;
    if (url === copy) made ??= asAdministrator(`create database "${name}" template "${inject("postgresTemplate")}" strategy file_copy`);
    await made;
    return url;
  };
  const tamper = async (statement: string): Promise<Record<string, unknown>[]> => {
    const at = await chosen();
    const bare = new URL(at);
    bare.searchParams.delete("schema");
    return query(bare.toString(), statement, at.searchParams.get("schema") as string);
  };
  return {
    kind: "postgres",
    get location() {
      url ??= empty;
      return url.toString();
    },
    open: async (options) => {
      const store = await openStore((await chosen()).toString(), options);
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
      if (url === copy) await asAdministrator(`drop database if exists "${name}" with (force)`);
      else await asAdministrator(`drop schema if exists "${name}" cascade; drop schema if exists "${name}_restoring" cascade`);
    },
  };
}

async function query(server: string, statement: string, schema?: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(server);
  await client.connect();
  try {
    if (schema !== undefined) await client.query(`set search_path to "${schema}"`);
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

export const PLACES = [
  ["SQLite", sqlitePlace],
  ["PostgreSQL", postgresPlace],
] as const;

import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
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

/** Outside of the test runner nobody has made one. */
function sqliteTemplate(): string | undefined {
  return process.env.VITEST === undefined ? undefined : inject("sqliteTemplate");
}

/** For a home whose daemon need not show how it makes its tables: half a second less on a busy disk. */
export function addTables(home: string): void {
  const [template, file] = [sqliteTemplate(), join(home, "state.db")];
  if (template !== undefined && !existsSync(file)) copyFileSync(template, file);
}

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
      const template = sqliteTemplate();
      if (template !== undefined && !existsSync(path)) copyFileSync(template, path);
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

/** Databases that were used and hold again what the template holds. */
const free: string[] = [];
/** A connection that has emptied a database before empties it in a tenth of the time: it knows all the tables. */
const cleaners = new Map<string, pg.Client>();
/** What a test may have done to a database so that the next one would notice. */
const CHANGES_SCHEMA = /\b(create|alter|drop|truncate|grant|revoke)\b/i;

/**
 * What is opened first is a copy of a database that was migrated once, which takes a tenth of the time; or such a copy that another test has
 * done with, which takes a third of that. Whoever asks for the location first, or brings a server of his own, gets a schema in which there is
 * nothing yet.
 */
export function postgresPlace(server?: string): StorePlace {
  const name = `test_${process.pid}_${Math.floor(Math.random() * 1e9)}_${schemas++}`;
  const empty = new URL(server ?? inject("postgresUrl"));
  empty.searchParams.set("schema", name);
  let url = server === undefined ? undefined : empty;
  let copy: { readonly database: string; readonly made: Promise<unknown> } | undefined;
  let isSpoiled = false;
  let offset = 0;
  const opened: Store[] = [];
  const asAdministrator = (statement: string) => query(server ?? inject("postgresUrl"), statement);
  const makeCopy = (): NonNullable<typeof copy> => {
    const used = free.pop();
    if (used !== undefined) return { database: used, made: Promise.resolve() };
    return {
      database: name,
      made: asAdministrator(`create database "${name}" template "${inject("postgresTemplate")}" strategy file_copy`),
    };
  };
  const chosen = async (): Promise<URL> => {
    if (!url) {
      copy = makeCopy();
      url = new URL(empty);
      url.pathname = `/${copy.database}`;
      url.searchParams.set("schema", TEMPLATE_SCHEMA);
    }
    await copy?.made;
    return url;
  };
  const tamper = async (statement: string): Promise<Record<string, unknown>[]> => {
    const at = await chosen();
    const bare = new URL(at);
    bare.searchParams.delete("schema");
    return query(bare.toString(), statement, at.searchParams.get("schema") as string);
  };
  const setClock = (ms: number) =>
    tamper(`create or replace function now_ms() returns bigint language sql volatile parallel safe
      as $$ select floor(date_part('epoch', clock_timestamp()) * 1000)::bigint${ms === 0 ? "" : ` + ${ms}`} $$`);
  /** Unless a test has made tables of its own through the store. */
  const isEmptied = async (database: string): Promise<boolean> => {
    if (offset !== 0) await setClock(0);
    const cleaner = cleaners.get(database) ?? (await cleanerOf(await chosen()));
    cleaners.set(database, cleaner);
    const { rows } = await cleaner.query(`select count(*)::int as tables from pg_tables where schemaname = '${TEMPLATE_SCHEMA}'`);
    if (rows[0]?.tables !== inject("postgresTables")) return false;
    await cleaner.query("select pg_temp.empty_tables()");
    return true;
  };
  return {
    kind: "postgres",
    get location() {
      url ??= empty;
      // Whoever is told it may have connections to it of which nothing is known here.
      isSpoiled = true;
      return url.toString();
    },
    open: async (options) => {
      const store = await openStore((await chosen()).toString(), options);
      opened.push(store);
      return store;
    },
    elapse: async (ms) => {
      offset += ms;
      await setClock(offset);
    },
    tamper: (statement) => {
      isSpoiled ||= CHANGES_SCHEMA.test(statement);
      return tamper(statement);
    },
    remove: async () => {
      let isClosed = true;
      for (const store of opened)
        await store.close().catch(() => {
          isClosed = false;
        });
      if (!copy) {
        await asAdministrator(`drop schema if exists "${name}" cascade; drop schema if exists "${name}_restoring" cascade`);
      } else if (isClosed && !isSpoiled && (await isEmptied(copy.database))) free.push(copy.database);
      else {
        await cleaners.get(copy.database)?.end();
        cleaners.delete(copy.database);
        await asAdministrator(`drop database if exists "${copy.database}" with (force)`);
      }
    },
  };
}

/** For nodes that need not show how they make their tables. */
export async function migratedPostgresPlace(): Promise<StorePlace> {
  const place = postgresPlace();
  await place.tamper("select 1");
  return place;
}

async function cleanerOf(at: URL): Promise<pg.Client> {
  const bare = new URL(at);
  bare.searchParams.delete("schema");
  const client = new pg.Client(bare.toString());
  // It may still be there when the server is stopped after the last test.
  client.on("error", () => {});
  await client.connect();
  await client.query(`set search_path to "${TEMPLATE_SCHEMA}"`);
  // What is prepared in a function is planned once.
  await client.query(`create function pg_temp.empty_tables() returns void language plpgsql as $$ begin ${inject("postgresReset")}; end $$`);
  return client;
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

/**
 * What whole daemons are tested on where the contract tests have tried the same acts on both databases: the second one only when all
 * that there is is asked for (`npm run test:all`).
 */
export const DAEMON_DATABASES = process.env.GUILDHALL_TEST_ALL ? ["SQLite", "PostgreSQL"] : ["SQLite"];

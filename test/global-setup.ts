import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { openStore } from "../src/store/store.ts";
import { keepCompiled } from "./compile-cache.ts";
import { foldersInMemory } from "./folders-in-memory.ts";
import { buildForTests } from "./launcher.ts";
import { startPostgres } from "./postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
    /** A database that has been migrated, to be copied. */
    postgresTemplate: string;
    /** What makes a used copy of it what it was, in PL/pgSQL. */
    postgresReset: string;
    postgresTables: number;
    /** A file that was migrated, to be copied. */
    sqliteTemplate: string;
  }
}

/** Nothing of it needs to outlive the machine: a crash of the server loses nothing that was written all the same. */
const FORGETFUL = { fsync: "off", full_page_writes: "off", max_wal_size: "'4GB'" };

/** One PostgreSQL for all contract tests; each store in it has a database or a schema of its own. One built program for all scenarios. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  foldersInMemory();
  const removeBuilt = buildForTests();
  const removeCompiled = keepCompiled();
  const given = process.env.GUILDHALL_TEST_POSTGRES;
  const server = given ? { url: given, remove: async () => {} } : await startPostgres(FORGETFUL);
  project.provide("postgresUrl", server.url);
  const template = `template_${process.pid}_${Date.now()}`;
  await administer(server.url, `create database ${template}`);
  const url = new URL(server.url);
  url.pathname = `/${template}`;
  url.searchParams.set("schema", "guildhall");
  await (await openStore(url.toString())).close();
  project.provide("postgresTemplate", template);
  const { reset, tables } = await resetOf(url);
  project.provide("postgresReset", reset);
  project.provide("postgresTables", tables);
  const folder = mkdtempSync(join(tmpdir(), "guildhall-template-"));
  const file = join(folder, "state.db");
  await (await openStore(`sqlite:${file}`)).close();
  project.provide("sqliteTemplate", file);
  return async () => {
    rmSync(folder, { recursive: true, force: true });
    const left = await administer(server.url, `select datname from pg_database where datname like 'test\\_${process.pid}\\_%'`);
    for (const { datname } of left) await administer(server.url, `drop database "${datname}" with (force)`);
    await administer(server.url, `drop database ${template} with (force)`);
    await server.remove();
    removeCompiled();
    removeBuilt();
  };
}

/** Emptying tables one by one takes a few milliseconds; truncating them would make a file for each and its indexes. */
async function resetOf(template: URL): Promise<{ readonly reset: string; readonly tables: number }> {
  const bare = new URL(template);
  bare.searchParams.delete("schema");
  const tables = await administer(
    bare.toString(),
    "select tablename as name from pg_tables where schemaname = 'guildhall' and tablename <> 'migrations'",
  );
  const sequences = await administer(
    bare.toString(),
    "select sequencename as name, start_value as first from pg_sequences where schemaname = 'guildhall'",
  );
  const reset = [
    ...tables.map(({ name }) => `delete from "${name}"`),
    ...sequences.map(({ name, first }) => `perform setval('"${name}"', ${first}, false)`),
  ].join("; ");
  // The one of the migrations, too.
  return { reset, tables: tables.length + 1 };
}

async function administer(server: string, statement: string): Promise<Record<string, string>[]> {
  const client = new pg.Client(server);
  await client.connect();
  const { rows } = await client.query(statement);
  await client.end();
  return rows;
}

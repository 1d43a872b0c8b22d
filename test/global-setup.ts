import pg from "pg";
import type { TestProject } from "vitest/node";
import { openStore } from "../src/store/store.ts";
import { startPostgres } from "./postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
    /** A database that has been migrated, to be copied. */
    postgresTemplate: string;
  }
}

/** Nothing of it needs to outlive the machine: a crash of the server loses nothing that was written all the same. */
const FORGETFUL = { fsync: "off", full_page_writes: "off", max_wal_size: "'4GB'" };

/** One PostgreSQL for all contract tests; each store in it has a database or a schema of its own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
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
  return async () => {
    await administer(server.url, `drop database ${template} with (force)`);
    await server.remove();
  };
}

async function administer(server: string, statement: string): Promise<void> {
  const client = new pg.Client(server);
  await client.connect();
  await client.query(statement);
  await client.end();
}

import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

/** One PostgreSQL for all contract tests; each store in it has a schema of its own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.GUILDHALL_TEST_POSTGRES;
  if (given) {
    project.provide("postgresUrl", given);
    return async () => {};
  }
  const server = await startPostgres();
  project.provide("postgresUrl", server.url);
  return () => server.remove();
}

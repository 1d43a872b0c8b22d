import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { NewIndex } from "../engine.ts";
import type { PostgresAddress } from "./postgres-url.ts";
import { clientConfig, sessionSettings } from "./sessions.ts";

/** Not the lock of migrations: that one is waited for within a transaction, and an index waits for every transaction older than itself. */
const INDEX_LOCK = 0x47554958;
const ASKED_EVERY_MS = 250;

/**
 * On a connection of its own, without the times that a statement has: an index over millions of rows takes minutes, in which everybody goes on
 * writing. Of several nodes one makes it. If it dies, the server may finish the index or leave it half-made; that one is begun anew.
 */
export async function makeIndex(address: PostgresAddress, index: NewIndex): Promise<void> {
  const client = new pg.Client({ ...clientConfig(address), query_timeout: 0 });
  // A connection that breaks is told by the statement that is on it.
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query(`${sessionSettings(address)}; SET statement_timeout TO 0; SET lock_timeout TO 0`);
    while (!(await isMyTurn(client))) await sleep(ASKED_EVERY_MS);
    if (await index.isDone()) return;
    const left = await client.query(
      "select indisvalid as whole from pg_index where indexrelid = to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1))",
      [index.name],
    );
    if (left.rows[0]?.whole) return;
    if (left.rows[0]) await client.query(`drop index concurrently "${index.name}"`);
    await client.query(index.statement.replace(/ index /, " index concurrently "));
  } finally {
    await client.end().catch(() => {});
  }
}

async function isMyTurn(client: pg.Client): Promise<boolean> {
  const answer = await client.query(`select pg_try_advisory_lock(${INDEX_LOCK}, hashtext(current_schema())) as mine`);
  return answer.rows[0].mine as boolean;
}

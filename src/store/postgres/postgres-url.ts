import type pg from "pg";
import { Failure } from "../../kernel/failure.ts";

export interface PostgresAddress {
  readonly config: pg.ClientConfig;
  readonly schema: string;
  readonly connections: number;
  /** Host, port and database, without user and password: fit for messages. */
  readonly place: string;
}

/** Reads `postgres://…`; `?schema=` and `?connections=` are ours, everything else goes to the driver. */
export function parsePostgresUrl(text: string): PostgresAddress {
  let url: URL;
  try {
    url = new URL(text);
  } catch (error) {
    throw new Failure("config.invalid", "`store:` is not a valid postgres:// address", { cause: error });
  }
  const schema = url.searchParams.get("schema") ?? "guildhall";
  const connections = Number(url.searchParams.get("connections") ?? 10);
  if (!/^[a-z_][a-z0-9_]{0,47}$/.test(schema))
    throw new Failure("config.invalid", `schema "${schema}" in \`store:\` must be lowercase letters, digits and _`);
  if (!Number.isInteger(connections) || connections < 2 || connections > 500)
    throw new Failure("config.invalid", "`connections` in `store:` must be 2 to 500");
  url.searchParams.delete("schema");
  url.searchParams.delete("connections");
  const place = `${url.hostname || "localhost"}:${url.port || 5432}${url.pathname}`;
  return { config: { connectionString: url.toString() }, schema, connections, place };
}

import pg from "pg";
import { type BoundValue, compile, refuseNul, type SqlValue } from "../sql.ts";
import type { PostgresAddress } from "./postgres-url.ts";

const dollar = (index: number): string => `$${index}`;

/** 64-bit integers as numbers: ours (milliseconds, sequence numbers, fences) stay below 2^53. */
const INT8 = 20;
const types: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: "text" | "binary") =>
    id === INT8 && format !== "binary" ? Number : pg.types.getTypeParser(id, format)) as pg.CustomTypesConfig["getTypeParser"],
};

export type Runnable = Pick<pg.ClientBase, "query">;

/** Each name is a plan that every connection keeps; texts beyond this many (lists of unusual lengths) go unnamed. */
const NAMED_STATEMENTS = 500;

/** Statements by text: a name lets the server plan each of them once per connection (measured: twice the speed of unnamed ones). */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #texts = new Map<TemplateStringsArray, string>();

  query(strings: TemplateStringsArray, values: readonly SqlValue[]): pg.QueryConfig {
    const known = this.#texts.get(strings);
    if (known !== undefined) {
      refuseNul(values);
      return this.#named(known, values as BoundValue[]);
    }
    const { text, values: bound, constant } = compile(strings, values, dollar);
    if (constant) this.#texts.set(strings, text);
    return this.#named(text, bound);
  }

  #named(text: string, values: BoundValue[]): pg.QueryConfig {
    let name = this.#names.get(text);
    if (name === undefined) {
      if (this.#names.size >= NAMED_STATEMENTS) return { text, values };
      name = `g${this.#names.size}`;
      this.#names.set(text, name);
    }
    return { name, text, values };
  }
}

/** `query_timeout` is the driver's, above the server's own: in a silent partition no answer of any kind comes. */
export function clientConfig(address: PostgresAddress): pg.ClientConfig {
  return {
    ...address.config,
    types,
    application_name: "guildhall",
    connectionTimeoutMillis: 5_000,
    query_timeout: 35_000,
    keepAlive: true,
  };
}

/**
 * What every session is set to. A body that stops half-way must not hold its locks for ever; sequential scans are avoided
 * because under serializable isolation one of a small table conflicts with every write to it.
 */
export function sessionSettings(address: PostgresAddress): string {
  return [
    `SET search_path TO "${address.schema}"`,
    "SET statement_timeout TO '30s'",
    "SET lock_timeout TO '10s'",
    "SET idle_in_transaction_session_timeout TO '10s'",
    "SET default_transaction_read_only TO off",
    "SET enable_seqscan TO off",
    "SET jit TO off",
  ].join("; ");
}

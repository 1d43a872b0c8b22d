import type { Dialect, Tx } from "../../store/engine.ts";
import { code, SqlFragment, sql } from "../../store/sql.ts";
import { type Asked, NOW } from "./claim-rows.ts";

const ALL_STRIPES = [0, 1, 2, 3, 4, 5, 6, 7];
const UNUSED_MS = 3_600_000;

/**
 * The holder's row first, then the root's, in the order of their numbers: everybody in this order, so that nobody waits in a circle.
 * A root has several rows. Plain names are in each other's way only when they are the same, so each needs one; a pattern needs all.
 */
export async function lockFor(tx: Tx, { holder, resource }: Asked): Promise<void> {
  const stripes = resource.pattern ? ALL_STRIPES : [stripeOf(resource.name)];
  const rows = [`holder/${holder}`, ...stripes.map((stripe) => `root${stripe}/${resource.elements[0]}`)];
  const values = rows.map((name, index) => sql`${code(index === 0 ? "" : ", ")}(${name}, now_ms())`);
  await tx.run`insert into claim_locks (name, used_at) values ${new SqlFragment(["", ...rows.map(() => "")], values)}
    on conflict (name) do update set used_at = excluded.used_at`;
}

function stripeOf(name: string): number {
  let hash = 0;
  for (let index = 0; index < name.length; index++) hash = (hash * 31 + name.charCodeAt(index)) >>> 0;
  return hash % ALL_STRIPES.length;
}

/** A lock that nobody has taken for an hour can go: whoever needs it makes it again. */
export async function forgetUnusedLocks(dialect: Dialect, tx: Tx, limit: number): Promise<void> {
  const unused = sql`select name from claim_locks where used_at < ${NOW} - ${UNUSED_MS} limit ${limit} ${dialect.skipLocked}`;
  await tx.run`delete from claim_locks where name ${dialect.amongFirst(unused)}`;
}

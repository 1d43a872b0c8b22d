import type { ClaimList, ClaimQuery } from "../../contract/claims.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Reads } from "../../store/engine.ts";
import { code, sql } from "../../store/sql.ts";
import { type ClaimRow, claimOf, maybeOverlapping, NOW } from "./claim-rows.ts";
import { overlaps as overlapsWith, parseResource } from "./resource.ts";

/** Above every character a name can go on with. */
const LAST = "\u{10FFFF}";

/** Live claims by name, a part at a time. */
export async function listClaims(reads: Reads, { prefix, overlaps, after, limit }: ClaimQuery): Promise<ClaimList> {
  const resource = overlaps === undefined ? undefined : parseResource(overlaps);
  const begins = prefix === undefined ? code("") : sql`and c.name >= ${prefix} and c.name < ${prefix + LAST}`;
  const near = resource ? sql`and ${maybeOverlapping(resource)}` : code("");
  const [name, fence] = after === undefined ? ["", 0] : placeOf(after);
  const rows = await reads.all<ClaimRow & { waiters: number }>`
    select fence, c.name, holder, mode, taken_at, expires_at, max_until,
      (select count(*) from claim_waiters as w where w.name = c.name and w.alive_until > ${NOW}) as waiters
    from claims as c where c.expires_at > ${NOW} and (c.name, c.fence) > (${name}, cast(${fence} as bigint)) ${begins} ${near}
    order by c.name, c.fence limit ${limit}`;
  const last = rows.length === limit ? rows.at(-1) : undefined;
  const shown = resource ? rows.filter((row) => overlapsWith(resource, row.name)) : rows;
  return {
    claims: shown.map((row) => ({ ...claimOf(row), waiters: row.waiters })),
    next: last ? `${last.fence}:${last.name}` : null,
  };
}

function placeOf(after: string): [string, number] {
  const [, fence, name] = /^(\d{1,16}):(.+)$/s.exec(after) ?? [];
  if (!fence || !name) throw new Failure("request.malformed", "after: expected `next` of the part before");
  return [name, Number(fence)];
}

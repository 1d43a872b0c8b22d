import type { ClaimList, ClaimQuery } from "../../contract/claims.ts";
import { Failure } from "../../kernel/failure.ts";
import { TimeSlice } from "../../kernel/time-slice.ts";
import type { Reads } from "../../store/engine.ts";
import { code, sql } from "../../store/sql.ts";
import { type ClaimRow, claimOf, maybeOverlapping, NOW } from "./claim-rows.ts";
import { overlaps as overlapsWith, parseResource } from "./resource.ts";

/** Above every character a name can go on with. */
const LAST = "\u{10FFFF}";

/** No more than these are read at once, and others run in between. */
const PIECE = 1_000;

/** Live claims by name, a part at a time. */
export async function listClaims(reads: Reads, query: ClaimQuery): Promise<ClaimList> {
  const slice = new TimeSlice();
  const claims: ClaimList["claims"] = [];
  for (let { after, limit: left } = query; ; ) {
    const piece = await readPiece(reads, { ...query, after, limit: Math.min(left, PIECE) }, slice);
    claims.push(...piece.claims);
    left -= PIECE;
    if (piece.next === null || left <= 0) return { claims, next: piece.next };
    after = piece.next;
    if (slice.isOver) await slice.next();
  }
}

async function readPiece(reads: Reads, { prefix, overlaps, after, limit }: ClaimQuery, slice: TimeSlice): Promise<ClaimList> {
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
  const claims: ClaimList["claims"] = [];
  for (const row of rows) {
    if (slice.isOver) await slice.next();
    if (!resource || overlapsWith(resource, row.name)) claims.push({ ...claimOf(row), waiters: row.waiters });
  }
  return {
    claims,
    next: last ? `${last.fence}:${last.name}` : null,
  };
}

function placeOf(after: string): [string, number] {
  const [, fence, name] = /^(\d{1,16}):(.+)$/s.exec(after) ?? [];
  if (!fence || !name) throw new Failure("request.malformed", "after: expected `next` of the part before");
  return [name, Number(fence)];
}

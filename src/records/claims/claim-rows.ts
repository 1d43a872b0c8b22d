import type { Claim, ClaimMode } from "../../contract/claims.ts";
import { TimeSlice } from "../../kernel/time-slice.ts";
import type { Reads } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import { overlaps, type Resource } from "./resource.ts";

export interface ClaimRow {
  readonly fence: number;
  readonly name: string;
  readonly holder: string;
  readonly mode: ClaimMode;
  readonly taken_at: number;
  readonly expires_at: number;
  readonly max_until: number;
}

export function claimOf(row: ClaimRow): Claim {
  return {
    resource: row.name,
    holder: row.holder,
    fence: row.fence,
    mode: row.mode,
    takenAt: row.taken_at,
    expiresAt: row.expires_at,
    maxUntil: row.max_until,
  };
}

/** As a subquery it is asked once; for every row anew it could not be looked up in an index, and on SQLite would call us for each. */
export const NOW = code("(select now_ms())");

/** Rows of claims or waiters whose resource may overlap with this one: exactly those, where neither is a pattern. */
export function maybeOverlapping(resource: Resource): SqlFragment {
  const above = resource.keysAbove.length === 0 ? code("") : sql`or (pattern = 1 and key in ${list(resource.keysAbove)})`;
  // "0" is the character after "/": everything below the key.
  const below = resource.pattern ? sql`or (key > ${resource.key} and key < ${`${resource.key.slice(0, -1)}0`})` : code("");
  return sql`(key = ${resource.key} ${below} ${above})`;
}

export interface Asked {
  readonly resource: Resource;
  readonly holder: string;
  readonly mode: ClaimMode;
  /** Its place in the line; null: behind everybody. */
  readonly waiter: number | null;
}

/** Whoever stands in the way: holds something that overlaps, or stands before us in the line for it. */
export interface Blocker {
  readonly holder: string;
  readonly expiresAt: number;
  readonly resource: string;
  readonly waiting: boolean;
}

export interface Surroundings {
  readonly holder: Blocker | undefined;
  readonly ahead: Blocker | undefined;
  /** The asker's own claim on this very name. */
  readonly own: { readonly fence: number; readonly mode: ClaimMode } | undefined;
  /** Claims that overlap, and whose time is up. */
  readonly expired: readonly number[];
}

interface NearRow {
  readonly kind: "claim" | "expired" | "waiter";
  readonly number: number;
  readonly name: string;
  readonly holder: string;
  readonly mode: ClaimMode;
  readonly until: number;
}

/** One who stands in the way is enough, and is nearly always among the first. */
const FIRST_LOOK = 100;
/** Near a pattern there may be any number of rows: no more than these are read at once, and others run in between. */
const PIECE = 2_500;

/** What is there around a resource that somebody asks for. Inside a transaction that holds the lock of its root, nothing of it can become more. */
export async function lookAround(reads: Reads, asked: Asked): Promise<Surroundings> {
  const slice = new TimeSlice();
  const first = await nearRows(reads, asked, code(`limit ${FIRST_LOOK}`));
  const seen = await sortOut(first, asked, slice);
  if (first.length < FIRST_LOOK || seen.holder) return seen;
  const all: Surroundings[] = [];
  for (let last = 0; ; ) {
    const rows = await nearRows(reads, asked, sql`order by number limit ${PIECE}`, last);
    const piece = await sortOut(rows, asked, slice);
    if (piece.holder) return piece;
    all.push(piece);
    if (rows.length < PIECE) break;
    last = (rows.at(-1) as NearRow).number;
    if (slice.isOver) await slice.next();
  }
  return {
    holder: undefined,
    // By rising number: the first is the first in line.
    ahead: all.find(({ ahead }) => ahead)?.ahead,
    own: all.find(({ own }) => own)?.own,
    expired: all.flatMap(({ expired }) => expired),
  };
}

function nearRows(reads: Reads, { resource, holder, mode, waiter }: Asked, limit: SqlFragment, after = 0): Promise<NearRow[]> {
  const near = maybeOverlapping(resource);
  const inTheWay = mode === "exclusive" ? sql`holder <> ${holder}` : sql`(holder <> ${holder} and mode = 'exclusive')`;
  return reads.all<NearRow>`
    select case when expires_at <= ${NOW} then 'expired' else 'claim' end as kind, fence as number, name, holder, mode, expires_at as until
    from claims where fence > ${after} and ${near} and (${inTheWay} or expires_at <= ${NOW} or (name = ${resource.name} and holder = ${holder}))
    union all
    select 'waiter' as kind, id as number, name, holder, mode, alive_until as until
    from claim_waiters where id > ${after} and ${near} and ${inTheWay} and alive_until > ${NOW} ${waiter === null ? code("") : sql`and id < ${waiter}`}
    ${limit}`;
}

async function sortOut(rows: readonly NearRow[], asked: Asked, slice: TimeSlice): Promise<Surroundings> {
  let holder: Blocker | undefined;
  let ahead: NearRow | undefined;
  let own: Surroundings["own"];
  const expired: number[] = [];
  for (const row of rows) {
    if (slice.isOver) await slice.next();
    if (!overlaps(asked.resource, row.name)) continue;
    if (row.kind === "expired") expired.push(row.number);
    else if (row.kind === "waiter") ahead = ahead && ahead.number < row.number ? ahead : row;
    else if (row.holder === asked.holder) own = { fence: row.number, mode: row.mode };
    // Of several, the one that will be gone last.
    else if (!holder || holder.expiresAt < row.until) holder = blockerOf(row);
  }
  return { holder, ahead: ahead && blockerOf(ahead), own, expired };
}

function blockerOf(row: NearRow): Blocker {
  return { holder: row.holder, expiresAt: row.until, resource: row.name, waiting: row.kind === "waiter" };
}

import { wholeMs } from "./keys.ts";
import { code, list, type SqlFragment, sql } from "./sql.ts";
import { type Claim, type ClaimedWork, claimedBy, ofKinds, type QueueParts } from "./work-items.ts";

interface ClaimRow {
  readonly id: number;
  readonly kind: string;
  readonly fence: number;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly payload: string;
  readonly tenant: string | null;
  readonly priority: number;
  readonly vtime: number;
}

/** Whose claims, for how long, and of what. `without`: nothing of these tenants; null among them is work that is nobody's. */
interface Claimer {
  readonly owner: string;
  readonly limit: number;
  readonly ttlMs: number;
  readonly kinds: readonly string[] | undefined;
  readonly without: readonly (string | null)[];
}

const IN_ORDER = code("order by priority desc, vtime, id");
const NOTHING = code("");
/** How far a claim that leaves tenants out looks along the line before it asks tenant by tenant. */
const LOOK_AHEAD = code("64");

/** Every tenant with something ready, one probe each: the index is not read, it is jumped along. */
const WAITING_TENANTS = sql`with recursive waiting (tenant) as (
    select min(tenant) from work where state = 'ready' and tenant is not null
    union all select (select min(w.tenant) from work as w where w.state = 'ready' and w.tenant is not null and w.tenant > waiting.tenant)
      from waiting where waiting.tenant is not null)`;

/** The most urgent first, then by turns of their tenants, then the oldest. */
export async function claimWork(parts: QueueParts, claimer: Claimer): Promise<ClaimedWork[]> {
  const { limit, kinds, without } = claimer;
  // The limit is part of the text: as a parameter PostgreSQL cannot judge it, never settles on a plan, and plans every claim anew (a
  // third of its time).
  const most = code(String(Math.trunc(limit)));
  const inLine = sql`where state = 'ready' ${ofKinds(kinds)} ${IN_ORDER}`;
  if (without.length === 0) return take(parts, claimer, sql`select id from work ${inLine} limit ${most}`);
  // Past the items of a tenant that is left out the way may be as long as its backlog. A look at the beginning of the line finds whoever
  // is next nearly always; else each tenant is asked for its first item, which costs a probe of the index by tenant.
  const others = sql`coalesce(tenant, '') not in ${list(padded(without.map((tenant) => tenant ?? "")))}`;
  const near = sql`select id from (select id, tenant, priority, vtime from work ${inLine} limit ${LOOK_AHEAD}) as near where ${others} ${IN_ORDER} limit ${most}`;
  const found = await take(parts, claimer, stillReady(parts, near));
  if (found.length > 0) return found;
  const first = sql`select id from (select
      (select w.id from work as w where w.state = 'ready' and w.tenant is not null and w.tenant = waiting.tenant ${ofKinds(kinds)}
        order by w.priority desc, w.vtime, w.id limit 1) as id
    from waiting where tenant is not null and ${others}) as heads where id is not null`;
  return take(parts, claimer, stillReady(parts, sql`${WAITING_TENANTS} ${first}`, sql`${IN_ORDER} limit ${most}`));
}

/** `skip`: of those that a transaction holds nobody waits for one, and with it all the others. */
export async function renewClaims(
  parts: QueueParts,
  claims: readonly Claim[],
  ttlMs: number,
  locked: "skip" | "wait",
): Promise<Set<number>> {
  if (claims.length === 0) return new Set();
  const { engine } = parts;
  const alive = sql`state = 'running' and lease_until > now_ms() and ${claimedBy(claims)}`;
  const rows = await engine.single(
    "renew work",
    (tx) =>
      tx.all<{ id: number }>`update work set lease_until = now_ms() + cast(${wholeMs(ttlMs)} as bigint)
      where ${locked === "wait" ? alive : sql`id ${engine.dialect.amongFirst(sql`select id from work where ${alive} ${engine.dialect.skipLocked}`)}`}
      returning id`,
    "with others",
  );
  return new Set(rows.map((row) => row.id));
}

function stillReady({ engine }: QueueParts, ids: SqlFragment, rest: SqlFragment = NOTHING): SqlFragment {
  return sql`select id from work where state = 'ready' and id ${engine.dialect.amongFirst(ids)} ${rest}`;
}

async function take({ engine, order, reached }: QueueParts, { owner, ttlMs }: Claimer, chosen: SqlFragment): Promise<ClaimedWork[]> {
  // Found first, and once: joined to a subquery, the plan read the whole table (3 ms for 3,000 rows).
  const due = sql`${chosen} ${engine.dialect.skipLocked}`;
  const rows = await engine.single(
    "claim work",
    (tx) =>
      tx.all<ClaimRow>`
      update work set state = 'running', fence = fence + 1, attempts = attempts + 1, woken = 0, owner = ${owner},
        lease_until = now_ms() + cast(${wholeMs(ttlMs)} as bigint)
      where id ${engine.dialect.amongFirst(due)}
      returning id, kind, fence, attempts, max_attempts, payload, tenant, priority, vtime`,
    "with others",
  );
  rows.sort((a, b) => b.priority - a.priority || a.vtime - b.vtime || a.id - b.id);
  for (const { vtime } of rows) order.passed(vtime);
  if (rows.length > 0) reached("queue.claim.done");
  return rows.map((row) => ({
    id: row.id,
    fence: row.fence,
    kind: row.kind,
    payload: JSON.parse(row.payload),
    attempt: row.attempts,
    maxAttempts: row.max_attempts,
    tenant: row.tenant,
  }));
}

/** Lists come in few lengths, so that few statements are prepared. */
function padded(values: readonly string[]): string[] {
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return [...values, ...Array<string>(length - values.length).fill(values[0] as string)];
}

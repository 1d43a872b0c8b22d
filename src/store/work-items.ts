import type { ReachedPoint } from "../kernel/crash-points.ts";
import { Failure } from "../kernel/failure.ts";
import type { Random } from "../kernel/random.ts";
import type { Scope } from "../kernel/scope.ts";
import type { Engine } from "./engine.ts";
import type { FairOrder, Tenant } from "./fair-order.ts";
import { code, list, pairs, type SqlFragment, sql } from "./sql.ts";
import type { WorkWatch } from "./work-watch.ts";

export interface NewWork {
  readonly kind: string;
  readonly payload: unknown;
  /** Items of one lane run one after another, in the order they were enqueued, on all nodes together. */
  readonly lane?: Scope;
  readonly priority?: number;
  readonly delayMs?: number;
  readonly maxAttempts?: number;
  /** Tenants take turns. Work of nobody goes before everybody's. */
  readonly tenant?: Tenant;
}

/** What an owner shows with every write: which item, and the number of its claim. */
export interface Claim {
  readonly id: number;
  readonly fence: number;
}

export interface ClaimedWork extends Claim {
  readonly kind: string;
  readonly payload: unknown;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly tenant: string | null;
}

export interface DeadWork {
  readonly id: number;
  readonly kind: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly error: string | null;
}

/** An item whose turn it is, or will be after `due_in` milliseconds. */
export interface TurnRow {
  readonly state: string;
  readonly kind: string;
  readonly tenant: string | null;
  readonly due_in: number;
}

/** What everything that is done with work needs. */
export interface QueueParts {
  readonly engine: Engine;
  readonly random: Random;
  readonly reached: ReachedPoint;
  readonly order: FairOrder;
  readonly watch: WorkWatch;
}

/** `(id, fence) in …`, and for the one claim of most callers the plain form, which is cheaper to execute. */
export function claimedBy(claims: readonly Claim[]): SqlFragment {
  const [first] = claims;
  if (first && claims.length === 1) return sql`id = ${first.id} and fence = ${first.fence}`;
  return sql`(id, fence) in ${pairs(claims.map((claim) => [claim.id, claim.fence] as const))}`;
}

export function ofKinds(kinds: readonly string[] | undefined): SqlFragment {
  return kinds ? sql`and kind in ${list(kinds)}` : code("");
}

export function staleClaim(claim: Claim): Failure {
  return new Failure("fence.stale", `work item ${claim.id} is no longer claimed with fence ${claim.fence}`);
}

/** Tells of each of these that is ready now, or will be. */
export function tellOf(watch: WorkWatch, tx: Parameters<WorkWatch["tell"]>[0], rows: readonly TurnRow[]): void {
  for (const { state, kind, tenant, due_in: dueIn } of rows)
    if (state === "ready") watch.tell(tx, kind, tenant);
    else if (state === "parked") watch.dueIn(dueIn);
}

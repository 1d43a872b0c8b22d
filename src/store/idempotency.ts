import type { ReachedPoint } from "../kernel/crash-points.ts";
import { Failure } from "../kernel/failure.ts";
import type { Scope } from "../kernel/scope.ts";
import type { Engine, Tx } from "./engine.ts";
import { plainKey, scopeKey, wholeMs } from "./keys.ts";
import { sql } from "./sql.ts";

export interface IdempotentRequest {
  /** Whose key it is and for what: identity, method, path. */
  readonly scope: Scope;
  readonly key: string;
  /** Hash of the whole request: the same key with another request is a conflict. */
  readonly request: string;
}

export type Begun =
  | { readonly state: "started"; readonly fence: number }
  | { readonly state: "replay"; readonly result: unknown }
  | { readonly state: "in-progress" }
  | { readonly state: "conflict" };

interface RecordRow {
  readonly request: string;
  readonly state: string;
  readonly result: string | null;
  readonly expired: number;
  readonly abandoned: number;
}

/** For the pulse: whether a key may be forgotten. */
export const KEYS_EXPIRED = sql`(select min(expires_at) from idempotency) <= now_ms()`;

/**
 * One effect for one key.
 *
 *   (none) → in progress(fence) → done(result) → expired
 *   in progress, and its runner died → after its lease: in progress(larger fence)
 *
 * `finish` belongs into the transaction of the effect: a runner that was overtaken then loses its effect with its record.
 */
export class Idempotency {
  readonly #engine: Engine;
  readonly #reached: ReachedPoint;

  constructor(engine: Engine, reached: ReachedPoint) {
    this.#engine = engine;
    this.#reached = reached;
  }

  async begin(request: IdempotentRequest, leaseMs: number, keepMs: number): Promise<Begun> {
    const begun = await this.#engine.transact("begin idempotent", (tx) => this.beginIn(tx, request, leaseMs, keepMs), "locked");
    if (begun.state === "started") this.#reached("idempotency.begun");
    return begun;
  }

  /** As `begin`, inside an open transaction: for effects that need no more than this transaction. */
  async beginIn(tx: Tx, request: IdempotentRequest, leaseMs: number, keepMs: number): Promise<Begun> {
    const scope = scopeKey(request.scope);
    const fence = await this.#engine.dialect.nextFence(tx);
    const inserted = await tx.get<{ fence: number }>`
      insert into idempotency (scope, key, request, state, fence, lease_until, expires_at)
      values (${scope}, ${plainKey(request.key)}, ${request.request}, 'in-progress', ${fence},
        now_ms() + cast(${wholeMs(leaseMs)} as bigint), now_ms() + cast(${wholeMs(keepMs)} as bigint))
      on conflict (scope, key) do nothing returning fence`;
    if (inserted) return { state: "started", fence: inserted.fence };
    const known = await tx.get<RecordRow>`
      select request, state, result, case when expires_at <= now_ms() then 1 else 0 end as expired,
        case when lease_until <= now_ms() then 1 else 0 end as abandoned
      from idempotency where scope = ${scope} and key = ${request.key} ${this.#engine.dialect.forUpdate}`;
    // Deleted between the two statements by its expiry: the caller's next try inserts it.
    if (!known) return { state: "in-progress" };
    const takeover =
      known.expired === 1 ? known.state === "done" || known.abandoned === 1 : known.state !== "done" && known.abandoned === 1;
    if (known.expired === 0 && known.request !== request.request) return { state: "conflict" };
    if (!takeover)
      return known.state === "done" ? { state: "replay", result: JSON.parse(known.result ?? "null") } : { state: "in-progress" };
    const taken = await tx.get<{ fence: number }>`
      update idempotency set request = ${request.request}, state = 'in-progress', result = null, fence = ${await this.#engine.dialect.nextFence(tx)},
        lease_until = now_ms() + cast(${wholeMs(leaseMs)} as bigint), expires_at = now_ms() + cast(${wholeMs(keepMs)} as bigint)
      where scope = ${scope} and key = ${request.key} returning fence`;
    return { state: "started", fence: taken?.fence as number };
  }

  /** Records the answer with the effect. Refused when another runner has taken over: then the effect must not happen either. */
  async finish(tx: Tx, request: IdempotentRequest, fence: number, result: unknown): Promise<void> {
    this.#reached("idempotency.finish.before");
    const changed = await tx.run`update idempotency set state = 'done', result = ${JSON.stringify(result ?? null)}
      where scope = ${scopeKey(request.scope)} and key = ${request.key} and fence = ${fence} and state = 'in-progress'`;
    if (changed === 0) throw new Failure("fence.stale", `another run of the request with key "${request.key}" has taken over`);
  }

  /** Keeps the key for a runner that needs longer than its lease; nothing, once another has taken over. */
  async renew(request: IdempotentRequest, fence: number, leaseMs: number): Promise<void> {
    await this.#engine.single(
      "renew idempotent",
      (tx) =>
        tx.run`update idempotency set lease_until = now_ms() + cast(${wholeMs(leaseMs)} as bigint)
        where scope = ${scopeKey(request.scope)} and key = ${request.key} and fence = ${fence} and state = 'in-progress'`,
    );
  }

  /** Gives back every key whose runner cannot be alive. Only for whoever is alone on the database. */
  async letGoOfAll(): Promise<void> {
    await this.#engine.single("let go of idempotent", (tx) => tx.run`delete from idempotency where state = 'in-progress'`);
  }

  /** Gives the key back after a failure without effect, so that the next try need not wait for the lease. */
  async abandon(request: IdempotentRequest, fence: number): Promise<void> {
    await this.#engine.single(
      "abandon idempotent",
      (tx) =>
        tx.run`delete from idempotency
        where scope = ${scopeKey(request.scope)} and key = ${request.key} and fence = ${fence} and state = 'in-progress'`,
    );
  }

  async sweep(): Promise<number> {
    return this.#engine.single(
      "sweep idempotency",
      (tx) => tx.run`delete from idempotency where expires_at <= now_ms() and (state = 'done' or lease_until <= now_ms())`,
    );
  }
}

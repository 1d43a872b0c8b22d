import { Failure } from "../../kernel/failure.ts";
import type { Scope } from "../../kernel/scope.ts";
import type { Reads } from "../../store/engine.ts";
import { scopeKey } from "../../store/keys.ts";

/** How many messages may wait for their turn: in all, for one agent, in one conversation. */
export interface WaitingLimits {
  readonly waiting: number;
  readonly waiting_per_agent: number;
  readonly waiting_per_chat: number;
}

/** How long a count of everything is good for where it does not matter: 10,000 take 0.9 ms to count, in the only thread. */
const FRESH_MS = 100;

/**
 * Refuses one more than may wait. Counted in the transaction that admits it, along the index of open runs and no further than the limit:
 * exact on SQLite; on PostgreSQL those that are admitted at the very same time do not see each other, and the limit may be passed by as many.
 *
 * All together are counted only where it could matter: not when a moment ago less than half were there, nor when it was full then.
 */
export class WaitingRoom {
  #counted = 0;
  #countedAt = Number.NEGATIVE_INFINITY;
  #since = 0;

  /** `lane`: where the work of its conversation stands in line; absent: it has none. */
  async enterIn(reads: Reads, agent: string, limits: WaitingLimits, lane?: Scope): Promise<void> {
    if (lane) await enterChat(reads, lane, limits.waiting_per_chat);
    const most = limits.waiting_per_agent;
    const own = await reads.get<{ count: number }>`select count(*) as count from (select 1 from runs
      where agent = ${agent} and status in ('queued', 'running', 'waiting') and status <> 'running' limit ${most}) as counted`;
    if ((own?.count ?? 0) >= most) throw full(`${most} messages wait for the agent "${agent}"`, "limits.waiting_per_agent", most);
    if (await this.#isFull(reads, limits.waiting))
      throw full(`${limits.waiting} messages wait for their turn`, "limits.waiting", limits.waiting);
    this.#since++;
  }

  async #isFull(reads: Reads, limit: number): Promise<boolean> {
    const fresh = performance.now() - this.#countedAt < FRESH_MS;
    if (fresh && 2 * (this.#counted + this.#since) < limit) return false;
    if (fresh && this.#counted >= limit) return true;
    const all = await reads.get<{ count: number }>`select count(*) as count from (select 1 from runs
      where status in ('queued', 'running', 'waiting') and status <> 'running' limit ${limit}) as counted`;
    this.#counted = all?.count ?? 0;
    this.#countedAt = performance.now();
    this.#since = 0;
    return this.#counted >= limit;
  }
}

async function enterChat(reads: Reads, lane: Scope, most: number): Promise<void> {
  const waiting = await reads.get<{ count: number }>`select count(*) as count from (select 1 from work
    where lane = ${scopeKey(lane)} and position is not null limit ${most}) as counted`;
  if ((waiting?.count ?? 0) >= most) throw full(`${most} messages wait in this conversation`, "limits.waiting_per_chat", most);
}

function full(said: string, key: string, limit: number): Failure {
  return new Failure("request.busy", `${said}, and no more may (${key})`, { details: { key, limit } });
}

import { Failure } from "../../kernel/failure.ts";
import type { Scope } from "../../kernel/scope.ts";
import type { Reads } from "../../store/engine.ts";
import { scopeKey } from "../../store/keys.ts";
import { code, type SqlFragment, sql } from "../../store/sql.ts";

/** How many messages may wait for their turn: in all, for one agent, in one conversation. */
export interface WaitingLimits {
  readonly waiting: number;
  readonly waiting_per_agent: number;
  readonly waiting_per_chat: number;
}

/** How long a count is good for where it does not matter: 10,000 take 0.9 ms to count, in the only thread. */
const FRESH_MS = 100;
/** Every agent that was spoken to has a count; more than this are forgotten together. */
const MAX_COUNTS = 10_000;

/**
 * Refuses one more than may wait. Counted in the transaction that admits it, along the index of open runs and no further than the limit:
 * exact on SQLite; on PostgreSQL those that are admitted at the very same time do not see each other, and the limit may be passed by as many.
 *
 * It is counted only where it could matter: not when a moment ago less than half were there; nor, of all together, when it was full then.
 */
export class WaitingRoom {
  readonly #all = new RecentCount();
  readonly #ofAgents = new Map<string, RecentCount>();

  /** `lane`: where the work of its conversation stands in line; absent: it has none. */
  async enterIn(reads: Reads, agent: string, limits: WaitingLimits, lane?: Scope): Promise<void> {
    if (lane) await enterChat(reads, lane, limits.waiting_per_chat);
    const most = limits.waiting_per_agent;
    const own = this.#countOf(agent);
    if (!own.isFarFrom(most)) {
      own.counted(await countIn(reads, sql`agent = ${agent} and`, most));
      if (own.last >= most) throw full(`${most} messages wait for the agent "${agent}"`, "limits.waiting_per_agent", most);
    }
    if (await this.#isFull(reads, limits.waiting))
      throw full(`${limits.waiting} messages wait for their turn`, "limits.waiting", limits.waiting);
    own.entered();
    this.#all.entered();
  }

  async #isFull(reads: Reads, limit: number): Promise<boolean> {
    if (this.#all.isFarFrom(limit)) return false;
    if (!this.#all.wasAt(limit)) this.#all.counted(await countIn(reads, code(""), limit));
    return this.#all.last >= limit;
  }

  #countOf(agent: string): RecentCount {
    const known = this.#ofAgents.get(agent);
    if (known) return known;
    if (this.#ofAgents.size >= MAX_COUNTS) this.#ofAgents.clear();
    const count = new RecentCount();
    this.#ofAgents.set(agent, count);
    return count;
  }
}

/** How many there were when somebody looked, and how many have come since. */
class RecentCount {
  #at = Number.NEGATIVE_INFINITY;
  #since = 0;
  last = 0;

  counted(count: number): void {
    this.last = count;
    this.#at = performance.now();
    this.#since = 0;
  }

  entered(): void {
    this.#since++;
  }

  isFarFrom(limit: number): boolean {
    return this.#isFresh && 2 * (this.last + this.#since) < limit;
  }

  wasAt(limit: number): boolean {
    return this.#isFresh && this.last >= limit;
  }

  get #isFresh(): boolean {
    return performance.now() - this.#at < FRESH_MS;
  }
}

async function countIn(reads: Reads, whose: SqlFragment, most: number): Promise<number> {
  const row = await reads.get<{ count: number }>`select count(*) as count from (select 1 from runs
    where ${whose} status in ('queued', 'running', 'waiting') and status <> 'running' limit ${most}) as counted`;
  return row?.count ?? 0;
}

/** No more than its lane has numbers between its first and its last; only where those are too many they are counted. */
async function enterChat(reads: Reads, lane: Scope, most: number): Promise<void> {
  const key = scopeKey(lane);
  const length = await reads.get<{ most: number }>`select tail - head + 1 as most from lanes where lane = ${key}`;
  if ((length?.most ?? 0) < most) return;
  const waiting = await reads.get<{ count: number }>`select count(*) as count from (select 1 from work
    where lane = ${key} and position is not null limit ${most}) as counted`;
  if ((waiting?.count ?? 0) >= most) throw full(`${most} messages wait in this conversation`, "limits.waiting_per_chat", most);
}

function full(said: string, key: string, limit: number): Failure {
  return new Failure("request.busy", `${said}, and no more may (${key})`, { details: { key, limit } });
}

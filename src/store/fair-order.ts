import type { Tx } from "./engine.ts";
import { type SqlFragment, sql } from "./sql.ts";

/** Whose work it is, and the share it has where tenants wait for each other. */
export interface Tenant {
  readonly name: string;
  readonly weight: number;
}

/** Longer than a commit takes; short, because what was taken back or removed must not count for long. */
const RECENT_MS = 50;
const MAX_RECENT = 10_000;

/**
 * Who comes next among tenants: self-clocked fair queueing. When an item becomes ready it gets a tag, and the smallest tag is taken first:
 *
 *   vtime = max(now, the tenant's largest tag that waits) + 1 / weight
 *   now   = the largest tag that was taken so far, or where the first item in line begins, if that is later
 *
 * A tenant that sends a thousand items stands in line with itself: whoever comes later is behind one or two of them, not behind all.
 *
 * Items that come back after they were taken (handed back, or their owner disappeared) keep their tag, and with it their place in front.
 * Those that were parked, or waited in their lane, are tagged when they become ready: nobody saves up a place in front by waiting.
 *
 * There is no row that everybody must hold: the first in line and a tenant's last are looked up in the index, and the largest tag taken is
 * each node's own; it is another's too, soon after, since all take from one line. On PostgreSQL transactions that are open at the same time do
 * not see each other's items: this node's own are kept apart here, while the items that n nodes add for one tenant at once may be n times as dense.
 */
export class FairOrder {
  readonly #last = new Map<string, { readonly tag: number; readonly at: number }>();
  readonly #oneWriter: boolean;
  #now = 0;

  constructor(oneWriter: boolean) {
    this.#oneWriter = oneWriter;
  }

  /** It was taken. */
  passed(tag: number): void {
    if (tag > this.#now) this.#now = tag;
  }

  /** For a row that is about to be added. */
  async next(tx: Tx, tenant: string, priority: number, cost: number): Promise<number> {
    const row = await tx.get<{ first: number | null; last: number | null }>`select
      (select vtime - cost from work where state = 'ready' and priority = ${priority} and vtime > 0 order by vtime limit 1) as first,
      (select max(vtime) from work where state = 'ready' and tenant is not null and tenant = ${tenant} and priority = ${priority}) as last`;
    const tag = Math.max(this.#now, row?.first ?? 0, row?.last ?? 0, this.#recent(tenant)) + cost;
    if (!this.#oneWriter) this.#note(tenant, tag);
    return tag;
  }

  /** For an update that makes rows ready. Several of one tenant in one statement may get the same. */
  get tagged(): SqlFragment {
    return sql`case when work.tenant is null then 0 else work.cost + (select max(tag) from (select cast(${this.#now} as double precision) as tag
      union all select (select w.vtime - w.cost from work as w
        where w.state = 'ready' and w.priority = work.priority and w.vtime > 0 order by w.vtime limit 1)
      union all select max(w.vtime) from work as w
        where w.state = 'ready' and w.tenant is not null and w.tenant = work.tenant and w.priority = work.priority) as tags) end`;
  }

  #recent(tenant: string): number {
    const last = this.#last.get(tenant);
    return last && performance.now() - last.at < RECENT_MS ? last.tag : 0;
  }

  #note(tenant: string, tag: number): void {
    if (this.#last.size >= MAX_RECENT) this.#last.clear();
    this.#last.set(tenant, { tag, at: performance.now() });
  }
}

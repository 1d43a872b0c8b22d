import type { LedgerEvent } from "../../contract/events.ts";
import { type PoolChange, poolChange } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { Store } from "../../store/store.ts";
import { mayRead } from "./access.ts";
import type { PoolRegistry } from "./registry.ts";

const PAGE = 500;
const TYPES: readonly string[] = ["pool.written", "pool.deleted", "pool.expired", "pool.retracted", "pool.endorsed"];

/**
 * Every operation on a pool after an event, in order, once, whole, for as long as the signal lets it. Keys that the watcher may
 * not read are left out, and operations that touch no others. It ends when the pool is gone for the watcher.
 */
export async function* watchPool(
  store: Store,
  registry: PoolRegistry,
  caller: Caller,
  pool: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<PoolChange, void, void> {
  for await (const event of eventsOf(store, pool, after, signal)) {
    const known = await registry.find(store.read, caller, pool).catch(() => undefined);
    if (!known) return;
    if (!TYPES.includes(event.type)) continue;
    const change = poolChange.parse(event);
    const keys = change.data.keys.filter(({ key }) => mayRead(caller, known.rules.of(key)));
    if (keys.length > 0) yield { ...change, data: { keys } };
  }
}

/** What is already there is read by the pool's name; only then the whole stream is followed. */
async function* eventsOf(store: Store, pool: string, after: number, signal: AbortSignal): AsyncGenerator<LedgerEvent, void, void> {
  let last = after;
  while (!signal.aborted) {
    const horizon = await store.ledger.horizon();
    const page = await store.ledger.read(last, PAGE, ["pool", pool]);
    for (const event of page) {
      if (signal.aborted) return;
      yield event;
      last = event.seq;
    }
    if (page.length > 0) continue;
    last = Math.max(last, horizon);
    break;
  }
  for await (const event of store.follow(last, signal)) {
    if (event.subject[0] === "pool" && event.subject[1] === pool && event.subject.length === 2) yield event;
  }
}

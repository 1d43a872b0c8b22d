import type { Tx } from "../../store/engine.ts";
import { code, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { type Asked, NOW } from "./claim-rows.ts";

/** A waiter whose process has been silent for so long stands in nobody's way any more. */
const ALIVE = code("now_ms() + 4000");
const KEEP_ALIVE_MS = 1_000;

/** Those who wait for a resource, in the order they came, on all nodes together. A place is a row; it lives as long as its process says so. */
export class WaitingLine {
  readonly #store: Store;
  readonly #node: string;
  readonly #maxPerResource: number;
  #keptAlive = performance.now();

  constructor(store: Store, node: string, maxPerResource: number) {
    this.#store = store;
    this.#node = node;
    this.#maxPerResource = maxPerResource;
  }

  /** Answers the number of the place, the same as before while it is alive; null when the line is full. */
  async enter(tx: Tx, { resource, holder, mode, waiter }: Asked): Promise<number | null> {
    if (waiter !== null) {
      const kept = await tx.run`update claim_waiters set alive_until = ${ALIVE} where id = ${waiter}`;
      if (kept > 0) return waiter;
    }
    const others = await tx.get<{ count: number }>`select count(*) as count from claim_waiters
      where name = ${resource.name} and alive_until > ${NOW}`;
    if ((others?.count ?? 0) >= this.#maxPerResource) return null;
    const row = await tx.get<{ id: number }>`
      insert into claim_waiters (id, name, key, pattern, holder, mode, node, since, alive_until)
      values (${await this.#store.dialect.nextFence(tx)}, ${resource.name}, ${resource.key}, ${resource.pattern ? 1 : 0}, ${holder}, ${mode},
        ${this.#node}, now_ms(), ${ALIVE}) returning id`;
    return row?.id as number;
  }

  async leave(tx: Tx, waiter: number): Promise<void> {
    await tx.run`delete from claim_waiters where id = ${waiter}`;
    tx.hint("claims");
  }

  /** All places of this process at once, whichever of its waiters comes by. */
  async keepAlive(): Promise<void> {
    if (performance.now() - this.#keptAlive < KEEP_ALIVE_MS) return;
    this.#keptAlive = performance.now();
    await this.#store.transact(
      "keep waiters alive",
      (tx) => tx.run`update claim_waiters set alive_until = ${ALIVE} where node = ${this.#node}`,
      "locked",
    );
  }

  /** Removes the places of processes that are gone. */
  async sweep(tx: Tx, limit: number): Promise<void> {
    const { dialect } = this.#store;
    const gone = sql`select id from claim_waiters where alive_until <= ${NOW} limit ${limit} ${dialect.skipLocked}`;
    if ((await tx.run`delete from claim_waiters where id ${dialect.amongFirst(gone)}`) > 0) tx.hint("claims");
  }
}

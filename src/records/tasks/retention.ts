import { list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { removeViewersIn } from "./task-viewers.ts";

/** In milliseconds after its end; null: for ever. By whoever does a task, or has opened it where nobody does. */
export type KeptFor = (name: string) => number | null;

const NAMES_AT_ONCE = 20;
const REMOVED_AT_ONCE = 100;

interface OldRow {
  readonly id: string;
  readonly viewers: string;
}

/**
 * Tasks that ended longer ago than they are to be kept go, with what they are found by. How long that is says the config of this moment, so that a
 * shorter time counts for what has ended already. What turns did for them, and what they wrote to pools, is kept by rules of its own.
 * Each round looks at some names, where the round before has stopped.
 */
export class Retention {
  readonly #store: Store;
  readonly #keptFor: KeptFor;
  #after = "";

  constructor(store: Store, keptFor: KeptFor) {
    this.#store = store;
    this.#keptFor = keptFor;
  }

  /** Any node may call it, often. Answers how many were removed. */
  async sweep(): Promise<number> {
    let removed = 0;
    for (let looked = 0; looked < NAMES_AT_ONCE; looked++) {
      const next = await this.#store.read.get<{ name: string }>`select coalesce(agent, opened_by) as name from tasks
        where ended_at is not null and coalesce(agent, opened_by) > ${this.#after} order by coalesce(agent, opened_by) limit 1`;
      this.#after = next?.name ?? "";
      if (!next) break;
      const ms = this.#keptFor(next.name);
      if (ms !== null) removed += await this.#removeOf(next.name, ms);
    }
    return removed;
  }

  async #removeOf(name: string, ms: number): Promise<number> {
    // Not yet, where a turn or a workflow that goes on may still read what came of it, its opener does not know of it, or something below it is
    // not over.
    const old = await this.#store.read.all<{ id: string }>`select t.id from tasks as t
      where t.ended_at is not null and t.untold is null and coalesce(t.agent, t.opened_by) = ${name} and t.ended_at < now_ms() - cast(${ms} as bigint)
        and not exists (select 1 from runs as r where r.id = t.parent_run and r.ended_at is null)
        and not exists (select 1 from tasks as p where p.id = t.parent_id and p.ended_at is null)
        and not exists (select 1 from tasks as c where c.parent_id = t.id and c.ended_at is null)
      order by t.ended_at limit ${REMOVED_AT_ONCE}`;
    if (old.length === 0) return 0;
    return this.#store.transact(
      "remove tasks",
      async (tx) => {
        // The rows first: whoever goes on with one of them meanwhile keeps it, and nobody can make it findable after this.
        const removed = await tx.all<OldRow>`delete from tasks where id in ${list(old.map(({ id }) => id))} and ended_at is not null
          returning id, viewers`;
        for (const { id, viewers } of removed) {
          await removeViewersIn(tx, id, JSON.parse(viewers) as string[]);
          await this.#store.marked.remove(tx, id);
        }
        await tx.run`delete from remote_tasks where task_id in ${list(removed.map(({ id }) => id))}`;
        return removed.length;
      },
      "locked",
    );
  }
}

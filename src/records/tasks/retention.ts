import type { Tx } from "../../store/engine.ts";
import { code, list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { removeViewersIn } from "./task-viewers.ts";

/** In milliseconds after its end; null: for ever. By whoever does a task, or has opened it where nobody does. */
export type KeptFor = (name: string) => number | null;

const NAMES_AT_ONCE = 200;
const REMOVED_AT_ONCE = 100;

interface OldRow {
  readonly id: string;
  readonly viewers: string;
}

interface NameRow {
  readonly name: string;
  readonly oldest: number;
  readonly now: number;
}

const NAME = code("coalesce(agent, opened_by)");

/** Removes what goes with tasks of these ids, unless somebody goes on with it in this moment. */
export type RemoveWith = (tx: Tx, ids: readonly string[]) => Promise<void>;

/**
 * Tasks that ended longer ago than they are to be kept go, with what they are found by, and a run of a workflow with its task. How long that is says the config of this moment, so that a
 * shorter time counts for what has ended already. What turns did for them, and what they wrote to pools, is kept by rules of its own.
 * Each round looks at some names, where the round before has stopped.
 */
export class Retention {
  readonly #store: Store;
  readonly #keptFor: KeptFor;
  readonly #removeWith: RemoveWith;
  #after = "";
  #isBehind = false;

  constructor(store: Store, keptFor: KeptFor, removeWith: RemoveWith) {
    this.#store = store;
    this.#keptFor = keptFor;
    this.#removeWith = removeWith;
  }

  /** Whether the last round has left something for the next. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Any node may call it, often. Answers how many were removed. */
  async sweep(): Promise<number> {
    let removed = 0;
    const names = await this.#names();
    for (const { name, oldest, now } of names) {
      const ms = this.#keptFor(name);
      if (ms !== null && oldest < now - ms) removed += await this.#removeOf(name, ms);
    }
    const isMore = names.length === NAMES_AT_ONCE;
    this.#after = isMore ? (names.at(-1)?.name ?? "") : "";
    this.#isBehind = isMore || removed > 0;
    return removed;
  }

  /** The next of them, with the end of the oldest task of each. One probe for a name: the index is not read, it is jumped along. */
  #names(): Promise<NameRow[]> {
    return this.#store.read.all<NameRow>`with recursive names (name) as (
        select (select ${NAME} from tasks where ended_at is not null and ${NAME} > ${this.#after} order by ${NAME} limit 1)
        union all select (select ${NAME} from tasks where ended_at is not null and ${NAME} > names.name order by ${NAME} limit 1)
          from names where names.name is not null)
      select name, now_ms() as now,
        (select ended_at from tasks where ended_at is not null and ${NAME} = names.name order by ended_at limit 1) as oldest
      from names where name is not null limit ${NAMES_AT_ONCE}`;
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
        // In the order in which whoever resumes a workflow holds both.
        await this.#removeWith(
          tx,
          old.map(({ id }) => id),
        );
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

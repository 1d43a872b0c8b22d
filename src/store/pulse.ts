import type { Engine } from "./engine.ts";
import { SqlFragment, sql } from "./sql.ts";
import { WORK_LOOK, type WorkLook, type WorkWatch } from "./work-watch.ts";

type Answers = WorkLook & Readonly<Record<string, number>>;

/**
 * Asks in one statement for all that may be due, so that a node with nothing to do costs one statement a second and not one for each thing that it
 * might have to do. The conditions are probes of indexes: `(select min(at) from …) <= now_ms()` reads one row on both databases, where `at <= now_ms()`
 * would read all of them on PostgreSQL, whose clock never stands still and cannot be looked up in an index.
 */
export class Pulse {
  readonly #engine: Engine;
  readonly #watch: WorkWatch;

  constructor(engine: Engine, watch: WorkWatch) {
    this.#engine = engine;
    this.#watch = watch;
  }

  /** Which of the conditions hold. Whoever waits for work hears of it too. */
  async ask(conditions: readonly SqlFragment[]): Promise<boolean[]> {
    const row = (await this.#engine.reads.get<Answers>`select ${WORK_LOOK} ${asColumns(conditions)}`) as Answers;
    this.#watch.heard(row);
    return conditions.map((_, index) => row[`c${index}`] === 1);
  }
}

function asColumns(conditions: readonly SqlFragment[]): SqlFragment {
  const strings = conditions.map((_, index) => (index === 0 ? ", case when " : ` then 1 else 0 end as c${index - 1}, case when `));
  return conditions.length === 0 ? sql`` : new SqlFragment([...strings, ` then 1 else 0 end as c${conditions.length - 1}`], conditions);
}

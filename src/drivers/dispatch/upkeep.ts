import { setTimeout as sleep } from "node:timers/promises";
import { failDeadTurn } from "../../acts/fail-turn.ts";
import { abandonDelivery } from "../../acts/settle-delivery.ts";
import { failDeadRemote } from "../../acts/tasks/remote-task.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import { DELIVERY_WORK, REMOTE_WORK, TURN_WORK } from "../../acts/work-kinds.ts";
import { asFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import { noteTakeovers } from "../../records/nodes/nodes.ts";
import { UNSEALED } from "../../store/sealer.ts";
import { list, type SqlFragment, sql } from "../../store/sql.ts";
import type { DeadWork } from "../../store/work-queue.ts";
import { WORK_LEFT } from "../../store/work-watch.ts";

const EVERY_MS = 1_000;
const DEAD_AT_ONCE = 100;
const BURIED = [TURN_WORK, DELIVERY_WORK, REMOTE_WORK];
const DEAD = sql`exists (select 1 from work where state = 'dead' and kind in ${list(BURIED)})`;

/** What a room has to do now and then: a bounded amount, safe on many nodes. */
export interface Chore {
  readonly name: string;
  /**
   * Whether there may be something to do, as a condition of SQL. Every second the conditions of all chores are asked together, in one statement
   * (see Pulse for what they may cost); a chore whose condition does not hold asks the database nothing.
   */
  readonly due?: () => SqlFragment;
  /** This often, whatever the condition says. With neither of the two it is done every second: for what asks no database. */
  readonly everyMs?: () => number;
  run(): Promise<unknown>;
}

/** What somebody has to do now and then; every node does it, and it does not matter which comes first. */
export class Upkeep {
  readonly #parts: TaskParts;
  readonly #node: string;
  readonly #log: Log;
  readonly #chores: readonly Chore[];
  readonly #stopping = new AbortController();
  readonly #doneAt = new Map<Chore, number>();
  #takeovers = 0;
  #loop: Promise<void> | undefined;

  constructor(parts: TaskParts, node: string, log: Log, chores: readonly Chore[] = []) {
    this.#parts = parts;
    this.#node = node;
    this.#log = log;
    this.#chores = chores;
  }

  /** How many claims this node has taken from owners that were not heard of any more. */
  get takeovers(): number {
    return this.#takeovers;
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  /** Work of owners that disappeared comes back or ends; events get their seal. */
  async round(): Promise<void> {
    const { store } = this.#parts;
    const asked = this.#chores.flatMap((chore) => (chore.due ? [{ chore, condition: chore.due() }] : []));
    const [isLeft, isDead, isUnsealed, ...answers] = await store.pulse.ask([
      WORK_LEFT,
      DEAD,
      UNSEALED,
      ...asked.map(({ condition }) => condition),
    ]);
    const due = new Set(asked.filter((_, index) => answers[index]).map(({ chore }) => chore));
    if (isLeft) await this.#chore({ name: "work that was left", run: () => this.#reap() });
    if (isLeft || isDead)
      for (const dead of await store.queue.dead(DEAD_AT_ONCE, BURIED))
        await this.#chore({ name: `bury ${dead.id}`, run: () => this.#bury(dead) });
    for (const chore of this.#chores) if (due.has(chore) || this.#isTime(chore)) await this.#chore(chore);
    if (isUnsealed) await this.#chore({ name: "seals", run: () => store.sealer.seal(this.#node) });
  }

  async #reap(): Promise<void> {
    const { store } = this.#parts;
    const { taken } = await store.queue.reap();
    if (taken.size === 0) return;
    for (const count of taken.values()) this.#takeovers += count;
    await this.#chore({ name: "takeovers", run: () => noteTakeovers(store, taken) });
  }

  #isTime(chore: Chore): boolean {
    if (!chore.everyMs) return !chore.due;
    return performance.now() - (this.#doneAt.get(chore) ?? Number.NEGATIVE_INFINITY) >= chore.everyMs();
  }

  /** One that fails keeps none of the others from being done. */
  async #chore(chore: Chore): Promise<void> {
    const { name } = chore;
    try {
      await chore.run();
      if (chore.everyMs) this.#doneAt.set(chore, performance.now());
    } catch (error) {
      this.#log.warn("a chore failed; trying again", { chore: name, code: asFailure(error).code, error: asFailure(error).message });
    }
  }

  async #bury(dead: DeadWork): Promise<void> {
    if (dead.kind === TURN_WORK) await failDeadTurn(this.#parts, dead);
    if (dead.kind === REMOTE_WORK) await failDeadRemote(this.#parts, dead);
    if (dead.kind === DELIVERY_WORK) await abandonDelivery(this.#parts.store, dead);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.round();
      } catch (error) {
        this.#log.warn("upkeep failed; trying again", { code: asFailure(error).code, error: asFailure(error).message });
      }
      await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
    }
  }
}

import { setTimeout as sleep } from "node:timers/promises";
import { failDeadTurn } from "../../acts/fail-turn.ts";
import { abandonDelivery } from "../../acts/settle-delivery.ts";
import { failDeadRemote } from "../../acts/tasks/remote-task.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import { DELIVERY_WORK, REMOTE_WORK, TURN_WORK } from "../../acts/work-kinds.ts";
import { asFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { DeadWork } from "../../store/work-queue.ts";

const EVERY_MS = 1_000;
const DEAD_AT_ONCE = 100;

/** What a room has to do every second: a bounded amount, safe on many nodes. */
export interface Chore {
  readonly name: string;
  run(): Promise<unknown>;
}

/** What somebody has to do now and then; every node does it, and it does not matter which comes first. */
export class Upkeep {
  readonly #parts: TaskParts;
  readonly #node: string;
  readonly #log: Log;
  readonly #chores: readonly Chore[];
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(parts: TaskParts, node: string, log: Log, chores: readonly Chore[] = []) {
    this.#parts = parts;
    this.#node = node;
    this.#log = log;
    this.#chores = chores;
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
    await store.queue.reap();
    for (const dead of await store.queue.dead(DEAD_AT_ONCE, [TURN_WORK, DELIVERY_WORK, REMOTE_WORK]))
      await this.#chore({ name: `bury ${dead.id}`, run: () => this.#bury(dead) });
    for (const chore of this.#chores) await this.#chore(chore);
    await store.sealer.seal(this.#node);
  }

  /** One that fails keeps none of the others from being done. */
  async #chore({ name, run }: Chore): Promise<void> {
    try {
      await run();
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

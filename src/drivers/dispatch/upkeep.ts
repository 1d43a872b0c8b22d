import { setTimeout as sleep } from "node:timers/promises";
import { failDeadTurn } from "../../acts/fail-turn.ts";
import { abandonDelivery } from "../../acts/settle-delivery.ts";
import { DELIVERY_WORK, TURN_WORK } from "../../acts/work-kinds.ts";
import { asFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { Store } from "../../store/store.ts";
import type { DeadWork } from "../../store/work-queue.ts";

const EVERY_MS = 1_000;
const DEAD_AT_ONCE = 100;

/** What somebody has to do now and then; every node does it, and it does not matter which comes first. */
export class Upkeep {
  readonly #store: Store;
  readonly #node: string;
  readonly #log: Log;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(store: Store, node: string, log: Log) {
    this.#store = store;
    this.#node = node;
    this.#log = log;
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
    await this.#store.queue.reap();
    for (const dead of await this.#store.queue.dead(DEAD_AT_ONCE, [TURN_WORK, DELIVERY_WORK])) await this.#bury(dead);
    await this.#store.sealer.seal(this.#node);
  }

  async #bury(dead: DeadWork): Promise<void> {
    if (dead.kind === TURN_WORK) await failDeadTurn(this.#store, dead);
    if (dead.kind === DELIVERY_WORK) await abandonDelivery(this.#store, dead);
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

import { asFailure } from "../kernel/failure.ts";
import type { Log } from "../kernel/log.ts";
import { joinNodes, leaveNodes, type NodeState, sayAlive, type ThisNode } from "../records/nodes/nodes.ts";
import type { Store } from "../store/store.ts";

/** Of the time in which it would be taken for dead. */
const BEATS = 3;

/**
 * Makes this node known to the others, and keeps saying that it is there.
 *
 *   up → draining (no new work) → gone (its row is removed)
 */
export class Presence {
  readonly #store: Store;
  readonly #node: ThisNode;
  readonly #now: () => Omit<NodeState, "state">;
  readonly #log: Log;
  #state: NodeState["state"] = "up";
  #beating: NodeJS.Timeout | undefined;
  /** The last sign of life: one at a time, so that none comes after the end. */
  #beat: Promise<void> = Promise.resolve();
  /** One waits for its turn: it will say how things are then, and more of them would say no more. */
  #isWaiting = false;
  #isOver = false;

  constructor(store: Store, node: ThisNode, now: () => Omit<NodeState, "state">, log: Log) {
    this.#store = store;
    this.#node = node;
    this.#now = now;
    this.#log = log;
  }

  async begin(): Promise<void> {
    await this.#join();
    this.#beating = setInterval(() => this.beat(), this.#node.leaseMs / BEATS);
    this.#beating.unref();
  }

  drain(): void {
    this.#state = "draining";
    this.beat();
  }

  /** Says now that this node is there, and how it is doing. */
  beat(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#beat = this.#beat.then(() => {
      this.#isWaiting = false;
      return this.#say();
    });
  }

  async end(): Promise<void> {
    clearInterval(this.#beating);
    this.#isOver = true;
    await this.#beat;
    await leaveNodes(this.#store, this.#node.id);
  }

  async #say(): Promise<void> {
    if (this.#isOver) return;
    try {
      if (!(await sayAlive(this.#store, this.#node.id, this.#all()))) await this.#join();
    } catch (error) {
      this.#log.warn("this node could not say that it is alive; trying again", {
        code: asFailure(error).code,
        error: asFailure(error).message,
      });
    }
  }

  /** What lives of this home before have held is free at once: they need not be waited for. */
  async #join(): Promise<void> {
    const before = await joinNodes(this.#store, this.#node, this.#all());
    await this.#store.queue.letGoOf(before);
    await this.#store.leases.letGoOf(before);
  }

  #all(): NodeState {
    return { state: this.#state, ...this.#now() };
  }
}

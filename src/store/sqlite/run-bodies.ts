import type { ReachedPoint } from "../../kernel/crash-points.ts";
import type { Lasts, Tx } from "../engine.ts";
import { type TransactionContext, tooSlow } from "../open-transaction.ts";
import type { WakeTopic } from "../wake.ts";
import type { Connection } from "./connection.ts";
import { needsReopen, sqliteFailure } from "./sqlite-errors.ts";
import { SqliteTx } from "./sqlite-tx.ts";

/** Nothing slow may happen inside a transaction; a body that takes this long is waiting for something else. */
const BODY_MS = 5_000;

export interface Operation {
  readonly label: string;
  readonly body: (tx: Tx) => Promise<unknown>;
  readonly lasts: Lasts;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** How it went, and what it will be told if the batch commits. */
  outcome: Outcome | undefined;
}

interface Outcome {
  readonly failed: boolean;
  readonly value: unknown;
  readonly topics: readonly WakeTopic[];
  readonly acts: readonly (() => void)[];
}

/** Operations whose bodies are to run, and what is to be done after each of them. */
interface Line {
  next(now: number): Operation | undefined;
  /** Spoiled: the body failed, and what it had written is still there. */
  ended(spoiled: boolean): void;
}

interface Surroundings {
  readonly path: string;
  readonly reached: ReachedPoint;
  readonly context: TransactionContext;
}

/**
 * Runs one body after another in the open transaction, by callbacks: with a promise or two around each body's own, what
 * JavaScript adds to a small write was half as much again. Rejects when the transaction itself is gone; nothing of it is left to
 * commit then.
 */
export function runBodies(connection: Connection, surroundings: Surroundings, line: Line): Promise<void> {
  const current = { label: "", open: true };
  // One context for all of them: entering one for each body cost as much as its promises.
  return surroundings.context.run(current, () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    new BodyRunner(connection, surroundings, line, current, resolve, reject).next();
    return promise.finally(() => {
      current.open = false;
    });
  });
}

class BodyRunner {
  readonly #connection: Connection;
  readonly #surroundings: Surroundings;
  readonly #line: Line;
  readonly #current: { label: string };
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;
  /** One timer for all bodies; one for each was a good part of what we add to SQLite's own time. */
  #timer: NodeJS.Timeout;
  #operation!: Operation;
  #tx!: SqliteTx;
  #since = 0;

  constructor(
    connection: Connection,
    surroundings: Surroundings,
    line: Line,
    current: { label: string },
    resolve: () => void,
    reject: (error: unknown) => void,
  ) {
    this.#connection = connection;
    this.#surroundings = surroundings;
    this.#line = line;
    this.#current = current;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = setTimeout(() => this.#look(), BODY_MS);
  }

  next(): void {
    this.#since = performance.now();
    let operation: Operation | undefined;
    try {
      operation = this.#line.next(this.#since);
    } catch (error) {
      this.#stop(error);
      return;
    }
    if (!operation) {
      clearTimeout(this.#timer);
      this.#resolve();
      return;
    }
    const tx = new SqliteTx(operation.label, this.#connection);
    this.#operation = operation;
    this.#tx = tx;
    this.#current.label = operation.label;
    try {
      operation.body(tx).then(
        (value) => this.#succeed(tx, value),
        (error) => this.#fail(tx, error),
      );
    } catch (error) {
      this.#fail(tx, error);
    }
  }

  #succeed(tx: SqliteTx, value: unknown): void {
    if (tx.open) this.#end(tx, { failed: false, value, topics: tx.topics, acts: tx.acts }, false);
  }

  #fail(tx: SqliteTx, error: unknown): void {
    // It was left behind: what it answers now finds nobody.
    if (!tx.open) return;
    const outcome = { failed: true, value: sqliteFailure(error, this.#surroundings.path), topics: [], acts: [] };
    if (this.#connection.db.isTransaction && !needsReopen(error)) {
      this.#end(tx, outcome, tx.wrote);
      return;
    }
    // Some errors (disk full, I/O) end the whole transaction.
    this.#operation.outcome = outcome;
    tx.end();
    this.#stop(error);
  }

  #end(tx: SqliteTx, outcome: Outcome, spoiled: boolean): void {
    this.#operation.outcome = outcome;
    tx.end();
    try {
      this.#line.ended(spoiled);
      this.#surroundings.reached("store.batch.operation-done");
    } catch (error) {
      this.#stop(error);
      return;
    }
    this.next();
  }

  /** A body that waits for something that is not the database is left behind: the others must not wait with it. */
  #look(): void {
    const left = this.#since + BODY_MS - performance.now();
    this.#timer = setTimeout(() => this.#look(), left > 0 ? left : BODY_MS);
    if (left <= 0) this.#fail(this.#tx, tooSlow(this.#operation.label));
  }

  #stop(error: unknown): void {
    clearTimeout(this.#timer);
    this.#reject(error);
  }
}

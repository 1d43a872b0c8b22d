import { setImmediate as nextTick, setTimeout as sleep } from "node:timers/promises";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure, isFailure } from "../../kernel/failure.ts";
import type { Lasts, Tx } from "../engine.ts";
import type { TransactionContext } from "../open-transaction.ts";
import type { WakeTopic } from "../wake.ts";
import type { Checkpointer } from "./checkpointer.ts";
import type { Connection } from "./connection.ts";
import type { LateSync } from "./late-sync.ts";
import { type Operation, runBodies } from "./run-bodies.ts";
import { isBusy, needsReopen, sqliteFailure } from "./sqlite-errors.ts";

/** A batch is closed at this size or age, so that a flood of writers does not make the first of them wait. */
const BATCH_OPERATIONS = 1024;
const BATCH_MS = 20;
/** Another program (an offline command, a backup) may hold the write lock for a moment; after this long it is stuck. */
const BUSY_MS = 30_000;

export interface GroupCommitOptions {
  readonly path: string;
  readonly open: () => Connection;
  readonly reached: ReachedPoint;
  readonly context: TransactionContext;
  readonly onCommit: (topics: ReadonlySet<WakeTopic>) => void;
  /** Who moves the log into the file; absent: the writer itself. */
  readonly checkpointer?: Checkpointer;
  /** Who puts on the disk what nobody has waited for. */
  readonly late: LateSync;
}

/**
 * The one writer. Waiting operations share a transaction, and so an fsync. Nobody hears anything, success or refusal, before the
 * COMMIT: a refusal may rest on rows of the same batch.
 *
 *   idle → begun → body* → committed → acknowledged → idle
 *   a body failed that had already written: … → rolled back → begun → (savepoint → body → release | rollback to)* → committed
 *
 * A savepoint for every operation from the start cost 4 of the 10 µs that SQLite needs for two rows; failures after a write are
 * rare, so only a batch that has one is done again with them. Bodies may run more than once (see Store.transact).
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #connection: Connection | undefined;
  #waiting: Operation[] = [];
  #draining: Promise<void> | undefined;
  #closed = false;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
    this.#connection = options.open();
  }

  transact<T>(label: string, body: (tx: Tx) => Promise<T>, lasts: Lasts = "at once"): Promise<T> {
    if (this.#closed) return Promise.reject(new Failure("store.unavailable", "the store is closed"));
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ label, body, lasts, resolve: resolve as (value: unknown) => void, reject, outcome: undefined });
      this.#draining ??= this.#drain();
    });
  }

  /** The writer's connection while nothing is open on it: it sees what was committed, and no more. */
  get between(): Connection | undefined {
    return this.#connection?.db.isTransaction === false ? this.#connection : undefined;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#draining;
    await this.#options.late.close();
    await this.#options.checkpointer?.close();
    this.#connection?.close();
    this.#connection = undefined;
  }

  async #drain(): Promise<void> {
    while (true) {
      // One turn of the event loop: requests that are already in the sockets join this batch.
      await nextTick();
      if (this.#waiting.length === 0) break;
      await this.#batch();
    }
    this.#draining = undefined;
  }

  async #batch(): Promise<void> {
    const taken: Operation[] = [];
    let committing = false;
    let wrote = false;
    // Only among themselves: whoever is told that his write lasts must not have been told by a commit without an fsync.
    const lasts = this.#waiting.every((operation) => operation.lasts === "with others") ? "with others" : "at once";
    try {
      let connection = await this.#begin(lasts);
      const before = connection.changes;
      this.#options.reached("store.batch.begun");
      if ((await this.#runTogether(connection, taken, lasts)) === "spoiled") {
        connection.control("ROLLBACK");
        connection = await this.#begin(lasts);
        await this.#runAlone(connection, taken);
      }
      wrote = connection.changes !== before;
      this.#options.reached("store.commit.before");
      committing = true;
      connection.control("COMMIT");
    } catch (error) {
      this.#refuse(error, taken, committing);
      return;
    }
    this.#options.reached("store.commit.after");
    // Where nothing was written, nothing was synced either.
    if (wrote) this.#options.late.committed(lasts === "at once");
    this.#acknowledge(taken);
    this.#options.checkpointer?.committed();
  }

  #acknowledge(taken: readonly Operation[]): void {
    const topics = new Set<WakeTopic>();
    for (const { outcome, resolve, reject } of taken) {
      this.#options.reached("store.acknowledge.before");
      if (outcome?.failed) reject(outcome.value);
      else resolve(outcome?.value);
      for (const topic of outcome?.topics ?? []) topics.add(topic);
    }
    for (const { outcome } of taken) for (const act of outcome?.acts ?? []) act();
    if (topics.size > 0) this.#options.onCommit(topics);
  }

  /** Takes the write lock. Another program's lock is waited for without blocking the event loop; nobody hears of it. */
  async #begin(lasts: Lasts): Promise<Connection> {
    const deadline = performance.now() + BUSY_MS;
    for (let wait = 1; ; wait = Math.min(50, wait * 2)) {
      try {
        this.#connection ??= this.#options.open();
        this.#connection.syncs(lasts);
        this.#connection.control("BEGIN IMMEDIATE");
        return this.#connection;
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error;
        await sleep(wait);
      }
    }
  }

  /** Spoiled: a body failed, and what it had written is still there among what the others wrote. */
  async #runTogether(connection: Connection, taken: Operation[], lasts: Lasts): Promise<"whole" | "spoiled"> {
    const started = performance.now();
    let spoiled = false;
    await runBodies(connection, this.#options, {
      next: (now) => {
        if (spoiled || taken.length === BATCH_OPERATIONS || now - started >= BATCH_MS) return undefined;
        if (lasts === "with others" && this.#waiting[0]?.lasts === "at once") return undefined;
        const operation = this.#waiting.shift();
        if (operation) taken.push(operation);
        return operation;
      },
      ended: (wasSpoiled) => {
        spoiled = wasSpoiled;
      },
    });
    return spoiled ? "spoiled" : "whole";
  }

  async #runAlone(connection: Connection, taken: readonly Operation[]): Promise<void> {
    // One that was too slow has had its time; its refusal stands.
    const again = taken.filter(({ outcome }) => !(outcome?.failed && isFailure(outcome.value, "store.transaction_too_slow")));
    await runBodies(connection, this.#options, {
      next: () => {
        const operation = again.shift();
        if (operation) connection.control("SAVEPOINT operation");
        return operation;
      },
      ended: (spoiled) => {
        if (spoiled) connection.control("ROLLBACK TO operation");
        connection.control("RELEASE operation");
      },
    });
  }

  /**
   * Nobody is acknowledged, nor told a refusal that may rest on rows of this batch. After an I/O error the next batch begins on a
   * fresh connection. If it came from the commit, its frames are in the log already, and a restart may find them whole.
   */
  #refuse(error: unknown, taken: readonly Operation[], committing: boolean): void {
    const failure =
      committing && needsReopen(error)
        ? new Failure("store.outcome_unknown", `the commit to ${this.#options.path} could not be made durable`, { cause: error })
        : sqliteFailure(error, this.#options.path);
    try {
      if (this.#connection?.db.isTransaction) this.#connection.control("ROLLBACK");
    } catch {
      // The connection is given up below.
    }
    if (needsReopen(error) || this.#connection?.db.isTransaction) {
      try {
        this.#connection?.close();
      } catch {
        // A connection that cannot even be closed is forgotten; its locks end with its file handle.
      }
      this.#connection = undefined;
    }
    for (const { reject } of taken.length > 0 ? taken : this.#waiting.splice(0)) reject(failure);
  }
}

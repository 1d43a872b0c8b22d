import { chmodSync } from "node:fs";
import { setImmediate as nextTick, setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../kernel/clock.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import type { Dialect, Engine, Isolation, Lasts, Reads, Tx } from "../engine.ts";
import { TransactionContext } from "../open-transaction.ts";
import { code, type SqlValue, sql } from "../sql.ts";
import { Wake } from "../wake.ts";
import { Checkpointer } from "./checkpointer.ts";
import { Connection } from "./connection.ts";
import { GroupCommit } from "./group-commit.ts";
import { LateSync, syncFile } from "./late-sync.ts";
import { inspectDatabase, openWriter } from "./open-database.ts";
import { isBusy, sqliteFailure } from "./sqlite-errors.ts";
import { isSelect } from "./sqlite-tx.ts";

const SNAPSHOT_CONNECTIONS = 4;
const READS_BEFORE_YIELD = 200;
const SNAPSHOT_YIELD_MS = 10;

export interface SqliteOptions {
  readonly path: string;
  /** The clock of the machine that has the file: this database's time. */
  readonly clock: Clock;
  readonly reached: ReachedPoint;
}

const dialect: Dialect = {
  name: "sqlite",
  forUpdate: code(""),
  skipLocked: code(""),
  amongFirst: (query) => sql`in (${query})`,
  async nextFence(tx) {
    const row = await tx.get<{ value: number }>`update counters set value = value + 1 where name = 'fence' returning value`;
    return sql`cast(${row?.value as number} as bigint)`;
  },
  // One writer: whoever is inside a transaction is alone.
  async lockMigrations() {},
};

/** The embedded database: one writer, which group-commits, and readers that see only what was committed. */
export class SqliteEngine implements Engine {
  readonly dialect = dialect;
  readonly wake = new Wake();
  readonly clock: Clock;
  readonly reads: Reads;
  readonly #options: SqliteOptions;
  readonly #writer: GroupCommit;
  readonly #context = new TransactionContext();
  readonly #idle: Connection[] = [];
  readonly #queue: (() => void)[] = [];
  #open = 0;
  #readsSinceYield = 0;
  #reader: Connection | undefined;

  constructor(options: SqliteOptions) {
    this.#options = options;
    this.clock = options.clock;
    inspectDatabase(options.path, options.clock);
    this.#writer = new GroupCommit({
      path: options.path,
      open: () => openWriter(options.path, options.clock),
      reached: options.reached,
      context: this.#context,
      onCommit: (topics) => {
        for (const topic of topics) this.wake.hint(topic);
      },
      checkpointer: new Checkpointer(options.path),
      late: new LateSync(() => syncFile(`${options.path}-wal`)),
    });
    chmodSync(options.path, 0o600);
    this.reads = {
      all: <Row>(strings: TemplateStringsArray, ...values: SqlValue[]) => this.#read(strings, (reader) => reader.all<Row>(strings, values)),
      get: <Row>(strings: TemplateStringsArray, ...values: SqlValue[]) => this.#read(strings, (reader) => reader.get<Row>(strings, values)),
    };
  }

  transact<T>(label: string, body: (tx: Tx) => Promise<T>, _isolation?: Isolation, lasts: Lasts = "at once"): Promise<T> {
    return this.#write(label, body, lasts);
  }

  single<T>(label: string, body: (tx: Tx) => Promise<T>, lasts: Lasts = "at once"): Promise<T> {
    return this.#write(label, body, lasts);
  }

  #write<T>(label: string, body: (tx: Tx) => Promise<T>, lasts: Lasts): Promise<T> {
    const nested = this.#context.nested(label);
    if (nested) return Promise.reject(nested);
    return this.#writer.transact(label, body, lasts);
  }

  async snapshot<T>(body: (reads: Reads) => Promise<T>): Promise<T> {
    const connection = await this.#borrow();
    let since = performance.now();
    const guarded = async <R>(read: () => R): Promise<R> => {
      if (++this.#readsSinceYield > READS_BEFORE_YIELD || performance.now() - since > SNAPSHOT_YIELD_MS) {
        await this.#letOthersRun();
        since = performance.now();
      }
      return read();
    };
    try {
      connection.control("BEGIN");
      return await body({
        all: <Row>(strings: TemplateStringsArray, ...values: SqlValue[]) => guarded(() => connection.all<Row>(strings, values)),
        get: <Row>(strings: TemplateStringsArray, ...values: SqlValue[]) => guarded(() => connection.get<Row>(strings, values)),
      });
    } catch (error) {
      throw sqliteFailure(error, this.#options.path);
    } finally {
      if (connection.db.isTransaction) connection.control("ROLLBACK");
      this.#giveBack(connection);
    }
  }

  /** There are none. */
  hintOthers(): void {}

  async close(): Promise<void> {
    // Readers first: only a writer that closes last moves the write-ahead log into the file.
    while (this.#open > this.#idle.length) await sleep(5);
    this.#reader?.close();
    for (const connection of this.#idle.splice(0)) connection.close();
    await this.#writer.close();
  }

  /**
   * In the middle of a batch the writer sees rows that are not committed yet: then a reader of its own is asked, which must forget its pages at
   * every commit; the writer still has them.
   */
  async #read<T>(strings: TemplateStringsArray, read: (reader: Connection) => T): Promise<T> {
    if (++this.#readsSinceYield > READS_BEFORE_YIELD) await this.#letOthersRun();
    for (let attempt = 1; ; attempt++) {
      try {
        // Only the reader refuses what would write.
        const writer = isSelect(strings) ? this.#writer.between : undefined;
        if (writer) return read(writer);
        this.#reader ??= this.#openReader();
        return read(this.#reader);
      } catch (error) {
        if (!isBusy(error) || attempt === 100) throw sqliteFailure(error, this.#options.path);
        await sleep(Math.min(50, attempt));
      }
    }
  }

  /** Reads never leave the thread: a caller that loops over them would keep timers and sockets, the writer too, from running. */
  async #letOthersRun(): Promise<void> {
    this.#readsSinceYield = 0;
    await nextTick();
  }

  async #borrow(): Promise<Connection> {
    const idle = this.#idle.pop();
    if (idle) return idle;
    if (this.#open < SNAPSHOT_CONNECTIONS) {
      const opened = this.#openReader();
      this.#open++;
      return opened;
    }
    await new Promise<void>((resolve) => this.#queue.push(resolve));
    return this.#borrow();
  }

  #giveBack(connection: Connection): void {
    this.#idle.push(connection);
    this.#queue.shift()?.();
  }

  #openReader(): Connection {
    return new Connection({ path: this.#options.path, readOnly: true, clock: this.#options.clock });
  }
}

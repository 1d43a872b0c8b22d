import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import { jitteredBackoff, type Random } from "../../kernel/random.ts";
import type { Dialect, Engine, Isolation, NewIndex, Reads, Tx } from "../engine.ts";
import { TransactionContext, withinTime } from "../open-transaction.ts";
import { code, type SqlValue, sql } from "../sql.ts";
import { type Reach, Wake, type WakeTopic } from "../wake.ts";
import { Hints } from "./hints.ts";
import { makeIndex } from "./make-index.ts";
import { isContention, isDisconnect, postgresFailure } from "./postgres-errors.ts";
import type { PostgresAddress } from "./postgres-url.ts";
import { clientConfig, type Runnable, StatementNames, sessionSettings } from "./sessions.ts";

/** How long one operation keeps trying while the server restarts or others win, before its caller is told. */
const PATIENCE_MS = 15_000;
/** Nothing slow may happen inside a transaction. Longer than on SQLite, where others wait for it: here it holds a connection and its locks. */
const BODY_MS = 20_000;
/** Changes with every crash and fail-over of the server, and survives an orderly restart. */
const SERVER_LIFE = "select pg_stat_get_bgwriter_stat_reset_time()::text as life";
/** The first whose indexes can be relied on when they are made while others write. */
const OLDEST_SERVER = 140_004;
const MIGRATION_LOCK = 0x4755494c;
const MIGRATION_WAITS = "200ms";

export interface PostgresOptions {
  readonly address: PostgresAddress;
  readonly random: Random;
  readonly reached: ReachedPoint;
}

const dialect: Dialect = {
  name: "postgres",
  forUpdate: code("for update"),
  skipLocked: code("for update skip locked"),
  amongFirst: (query) => sql`= any (array(${query}))`,
  nextFence: async () => code("nextval('fences')"),
  lockMigrations: async (tx) => {
    await tx.get`select pg_advisory_xact_lock(${MIGRATION_LOCK}, hashtext(current_schema()))`;
    // Whoever waits for the whole of a table makes everybody wait who comes after him. He tries again, as all do who lose.
    await tx.get`select set_config('lock_timeout', ${MIGRATION_WAITS}, true)`;
  },
};

export class PostgresEngine implements Engine {
  readonly dialect = dialect;
  readonly wake = new Wake();
  readonly reads: Reads;
  readonly #options: PostgresOptions;
  readonly #pool: pg.Pool;
  readonly #names = new StatementNames();
  readonly #context = new TransactionContext();
  readonly #hints: Hints;
  /** The life of the server in which each connection was made; no connection outlives a crash. */
  readonly #lives = new WeakMap<pg.ClientBase, string>();

  private constructor(options: PostgresOptions) {
    this.#options = options;
    const { address } = options;
    this.#pool = new pg.Pool({
      ...clientConfig(address),
      max: address.connections,
      idleTimeoutMillis: 30_000,
      onConnect: async (client) => {
        // A connection that breaks between two statements of a transaction has no other listener, and would end the process.
        // Whoever uses it learns of it from the next statement.
        client.on("error", () => {});
        await client.query(sessionSettings(address));
        this.#lives.set(client, (await client.query(SERVER_LIFE)).rows[0]?.life as string);
      },
    });
    // A connection that breaks while idle is replaced by the pool; the error has no other listener.
    this.#pool.on("error", () => {});
    this.#hints = new Hints(address, this.#pool, this.wake, Buffer.from(options.random.bytes(6)).toString("hex"));
    const reads = readsOn(this.#pool, this.#names);
    this.reads = {
      all: <Row>(strings: TemplateStringsArray, ...values: SqlValue[]) => this.#patiently(() => reads.all<Row>(strings, ...values)),
      get: <Row>(strings: TemplateStringsArray, ...values: SqlValue[]) => this.#patiently(() => reads.get<Row>(strings, ...values)),
    };
  }

  /** Connects at once, so that a wrong address is told at the start and not at the first message. */
  static async open(options: PostgresOptions): Promise<PostgresEngine> {
    const { address } = options;
    const probe = new pg.Client(clientConfig(address));
    probe.on("error", () => {});
    try {
      await probe.connect();
      const answer = await probe.query("select pg_is_in_recovery() as replica, current_setting('server_version_num')::int as version");
      if (answer.rows[0].replica) throw new Failure("store.read_only", `PostgreSQL at ${address.place} is a read-only replica`);
      if (answer.rows[0].version < OLDEST_SERVER)
        throw new Failure("store.unreachable", `PostgreSQL at ${address.place} is older than version 14.4`);
      await createSchema(probe, address.schema);
    } catch (error) {
      const failure = postgresFailure(error, address.place);
      if (failure instanceof Failure && failure.code !== "store.unavailable") throw failure;
      throw new Failure(
        "store.unreachable",
        `PostgreSQL at ${address.place} cannot be reached: ${(error as Error).message || (error as { code?: string }).code}`,
        { cause: error },
      );
    } finally {
      probe.end().catch(() => {});
    }
    return new PostgresEngine(options);
  }

  async transact<T>(label: string, body: (tx: Tx) => Promise<T>, isolation: Isolation = "serializable"): Promise<T> {
    const nested = this.#context.nested(label);
    if (nested) throw nested;
    const level = isolation === "locked" ? "READ COMMITTED" : "SERIALIZABLE";
    return this.#patiently(() => this.#attempt(label, body, `BEGIN ISOLATION LEVEL ${level}; SELECT pg_current_xact_id() AS xid`));
  }

  async single<T>(label: string, body: (tx: Tx) => Promise<T>): Promise<T> {
    const nested = this.#context.nested(label);
    if (nested) throw nested;
    const { value, topics } = await this.#patiently(async () => {
      const client = await this.#pool.connect();
      const tx = new PostgresTx(label, client, this.#names, 1);
      let lost: unknown;
      try {
        return { value: await this.#runBody(tx, () => this.#context.run(tx, body)), topics: tx.topics };
      } catch (error) {
        if (!isDisconnect(error)) throw error;
        lost = error;
        throw new Failure("store.outcome_unknown", `the connection broke during "${label}"`, { cause: error });
      } finally {
        client.release(lost !== undefined);
      }
    });
    for (const [topic, reach] of topics) this.#hints.send(topic, reach);
    return value;
  }

  async snapshot<T>(body: (reads: Reads) => Promise<T>): Promise<T> {
    const client = await this.#patiently(() => this.#pool.connect());
    let broken = true;
    try {
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      const value = await body(readsOn(client, this.#names));
      await client.query("COMMIT");
      broken = false;
      return value;
    } catch (error) {
      throw postgresFailure(error, this.#options.address.place);
    } finally {
      client.release(broken);
    }
  }

  makeIndex(index: NewIndex): Promise<void> {
    return this.#patiently(() => makeIndex(this.#options.address, index));
  }

  hintOthers(topic: WakeTopic): void {
    this.#hints.tellOthers(topic);
  }

  async close(): Promise<void> {
    await this.#hints.close();
    await this.#pool.end();
  }

  async #attempt<T>(label: string, body: (tx: Tx) => Promise<T>, begin: string): Promise<T> {
    const client = await this.#pool.connect();
    const tx = new PostgresTx(label, client, this.#names);
    let broken = true;
    try {
      const begun = (await client.query(begin)) as unknown as { rows: { xid: string }[] }[];
      this.#options.reached("store.batch.begun");
      const value = await this.#runBody(tx, () => withinTime(label, BODY_MS, () => this.#context.run(tx, body)));
      this.#options.reached("store.batch.operation-done");
      this.#options.reached("store.commit.before");
      await this.#commit(client, tx, begun[1]?.rows[0]?.xid as string);
      broken = false;
      this.#options.reached("store.commit.after");
      for (const [topic, reach] of tx.topics) this.#hints.send(topic, reach);
      this.#options.reached("store.acknowledge.before");
      return value;
    } catch (error) {
      if (!isDisconnect(error))
        broken = await client.query("ROLLBACK").then(
          () => false,
          () => true,
        );
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /**
   * A statement that fails dooms the transaction, whatever the body makes of it. Any other error is the body's own: it is final,
   * even if it reads like one of the driver's. After the end nothing more can be sent, or it would run outside the transaction.
   */
  async #runBody<T>(tx: PostgresTx, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw tx.failure ?? new BodyRefused(error);
    } finally {
      tx.end();
    }
  }

  /** Returns only when the transaction is known to be committed; when its answer is lost, the server is asked what became of it. */
  async #commit(client: pg.PoolClient, tx: PostgresTx, xid: string): Promise<void> {
    try {
      const answer = await client.query("COMMIT");
      if (answer.command === "COMMIT") return;
    } catch (error) {
      if (!isDisconnect(error)) throw error;
      if (await this.#wasCommitted(tx.label, xid, this.#lives.get(client))) return;
      throw error;
    }
    // A statement had failed and the body went on: the server then answers COMMIT with ROLLBACK, and calls it a success.
    throw tx.failure ?? new Failure("internal.bug", `transaction "${tx.label}" was rolled back by the server`);
  }

  async #wasCommitted(label: string, xid: string, life: string | undefined): Promise<boolean> {
    const deadline = performance.now() + PATIENCE_MS;
    for (let attempt = 1; performance.now() < deadline; attempt++) {
      await sleep(jitteredBackoff(attempt, this.#options.random, 10, 500));
      const answer = await this.#pool
        .query(`select pg_xact_status($1::xid8) as status, (${SERVER_LIFE}) as life`, [xid])
        .catch(() => undefined);
      const status = answer?.rows[0]?.status as string | null | undefined;
      // A number that never reached the server's log is given out again after a crash: the status may be another transaction's.
      if (answer && answer.rows[0]?.life !== life) break;
      if (status === "committed") return true;
      if (status === "aborted") return false;
      if (status === null) break;
    }
    throw new Failure("store.outcome_unknown", `the answer to the commit of "${label}" was lost`);
  }

  /** Tries again while the server restarts, or while other transactions win. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + PATIENCE_MS;
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof BodyRefused) throw error.reason;
        const contention = isContention(error);
        if ((!contention && !isDisconnect(error)) || performance.now() > deadline)
          throw postgresFailure(error, this.#options.address.place);
        await sleep(jitteredBackoff(attempt, this.#options.random, contention ? 2 : 50, contention ? 200 : 1_000));
      }
    }
  }
}

/** What a body threw by itself, carried past everything that looks for the driver's errors. */
class BodyRefused extends Error {
  readonly reason: unknown;

  constructor(reason: unknown) {
    super("the body of a transaction refused");
    this.reason = reason;
  }
}

/** `if not exists` does not help two nodes that create it at the same moment: one of them would fail. */
async function createSchema(client: pg.Client, schema: string): Promise<void> {
  const known = await client.query("select 1 from pg_namespace where nspname = $1", [schema]);
  if (known.rows.length > 0) return;
  await client.query(`begin; select pg_advisory_xact_lock(${MIGRATION_LOCK}, hashtext('${schema}'));
    create schema if not exists "${schema}"; commit`);
}

function readsOn(runnable: Runnable, names: StatementNames): Reads {
  return {
    all: async <Row>(strings: TemplateStringsArray, ...values: SqlValue[]) =>
      (await runnable.query(names.query(strings, values))).rows as Row[],
    get: async <Row>(strings: TemplateStringsArray, ...values: SqlValue[]) =>
      (await runnable.query(names.query(strings, values))).rows[0] as Row | undefined,
  };
}

class PostgresTx implements Tx {
  readonly label: string;
  readonly topics = new Map<WakeTopic, Reach>();
  failure: unknown;
  #client: Runnable | undefined;
  readonly #names: StatementNames;
  #statementsLeft: number;

  constructor(label: string, client: Runnable, names: StatementNames, statements = Number.POSITIVE_INFINITY) {
    this.label = label;
    this.#client = client;
    this.#names = names;
    this.#statementsLeft = statements;
  }

  get open(): boolean {
    return this.#client !== undefined;
  }

  end(): void {
    this.#client = undefined;
  }

  async all<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row[]> {
    return (await this.#query(strings, values)).rows as Row[];
  }

  async get<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row | undefined> {
    return (await this.#query(strings, values)).rows[0] as Row | undefined;
  }

  async run(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number> {
    return (await this.#query(strings, values)).rowCount ?? 0;
  }

  async insert(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number> {
    const row = (await this.#query(strings, values)).rows[0] as Record<string, number>;
    return Object.values(row)[0] as number;
  }

  hint(topic: WakeTopic, reach: Reach = "everywhere"): void {
    if (this.topics.get(topic) !== "everywhere") this.topics.set(topic, reach);
  }

  async #query(strings: TemplateStringsArray, values: readonly SqlValue[]): Promise<pg.QueryResult> {
    if (!this.#client) throw new Failure("store.transaction_too_slow", `transaction "${this.label}" has already ended`);
    if (this.#statementsLeft-- <= 0) throw new Failure("internal.bug", `"${this.label}" is a single statement, and ran a second one`);
    try {
      return await this.#client.query(this.#names.query(strings, values));
    } catch (error) {
      this.failure ??= error;
      throw error;
    }
  }
}

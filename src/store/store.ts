import type { LedgerEvent } from "../contract/events.ts";
import { type Clock, systemClock } from "../kernel/clock.ts";
import { noCrashPoints, type ReachedPoint } from "../kernel/crash-points.ts";
import type { Log } from "../kernel/log.ts";
import { type Random, systemRandom } from "../kernel/random.ts";
import { type BackupSummary, backup } from "./backup.ts";
import { Blobs } from "./blobs.ts";
import type { Dialect, Engine, Isolation, Lasts, Reads, Tx } from "./engine.ts";
import { Idempotency } from "./idempotency.ts";
import { Leases } from "./leases.ts";
import { Ledger } from "./ledger.ts";
import { LedgerTail } from "./ledger-tail.ts";
import { MarkedDocuments } from "./marked-documents.ts";
import { confirmSchema, MIGRATIONS, migrate } from "./migrations/migrate.ts";
import { Pulse } from "./pulse.ts";
import { Sealer } from "./sealer.ts";
import { Search } from "./search.ts";
import type { Wake } from "./wake.ts";
import { WorkQueue } from "./work-queue.ts";

/** `sqlite:/path/to/state.db` or `postgres://…`. */
export type StoreLocation = string;

export interface StoreOptions {
  /** Time of the machine that has the SQLite file. PostgreSQL has a clock of its own. */
  readonly clock?: Clock;
  readonly random?: Random;
  readonly reached?: ReachedPoint;
  /** Is told of a database that a newer program has used, and of an index that takes its time. */
  readonly log?: Log;
}

/** The one door to the database. */
export class Store {
  readonly ledger: Ledger;
  readonly queue: WorkQueue;
  readonly leases: Leases;
  readonly idempotency: Idempotency;
  readonly search: Search;
  /** Full text of what there may be very much of. */
  readonly marked: MarkedDocuments;
  readonly blobs: Blobs;
  readonly sealer: Sealer;
  readonly pulse: Pulse;
  readonly read: Reads;
  readonly #engine: Engine;
  readonly #tail: LedgerTail;

  constructor(engine: Engine, random: Random, reached: ReachedPoint) {
    this.#engine = engine;
    this.read = engine.reads;
    this.ledger = new Ledger(engine);
    this.queue = new WorkQueue(engine, random, reached);
    this.leases = new Leases(engine);
    this.idempotency = new Idempotency(engine, reached);
    this.search = new Search(engine);
    this.marked = new MarkedDocuments(engine);
    this.blobs = new Blobs(engine, reached);
    this.sealer = new Sealer(engine, this.ledger, this.leases, reached);
    this.pulse = new Pulse(engine, this.queue.watch);
    this.#tail = new LedgerTail(engine, this.ledger);
  }

  /** What the two databases say differently, for the SQL of the records. */
  get dialect(): Dialect {
    return this.#engine.dialect;
  }

  /** Hints about a topic, to look again sooner than the next poll. */
  get wake(): Wake {
    return this.#engine.wake;
  }

  /** Transactions are made in the order in which they were asked for; a power cut that takes one takes those after it too. */
  get keepsOrder(): boolean {
    return this.kind === "sqlite";
  }

  get kind(): "sqlite" | "postgres" {
    return this.#engine.dialect.name;
  }

  /**
   * Runs the body as one transaction and resolves after its commit, which `lasts` from then on. The body may run more than once, and does nothing
   * but read and write through its `tx`; whatever it throws takes all of it back. Opening one inside another is an error.
   */
  transact<T>(label: string, body: (tx: Tx) => Promise<T>, isolation?: Isolation, lasts?: Lasts): Promise<T> {
    return this.#engine.transact(label, body, isolation, lasts);
  }

  /** A body of exactly one statement, which is a transaction by itself and needs neither beginning nor end. */
  single<T>(label: string, body: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#engine.single(label, body);
  }

  /** Several reads of one moment. */
  snapshot<T>(body: (reads: Reads) => Promise<T>): Promise<T> {
    return this.#engine.snapshot(body);
  }

  follow(after: number, signal: AbortSignal): AsyncGenerator<LedgerEvent, void, void> {
    return this.#tail.follow(after, signal);
  }

  /** For a node, once the others can see it: whether nobody has changed the schema meanwhile as it cannot bear. */
  confirmSchema(): Promise<void> {
    return confirmSchema(this.#engine);
  }

  backup(file: string): Promise<BackupSummary> {
    return backup(this.#engine, file);
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}

export async function openEngine(location: StoreLocation, options: StoreOptions): Promise<Engine> {
  const random = options.random ?? systemRandom;
  const reached = options.reached ?? noCrashPoints;
  if (location.startsWith("sqlite:")) {
    const { SqliteEngine } = await import("./sqlite/sqlite-engine.ts");
    return new SqliteEngine({ path: location.slice("sqlite:".length), clock: options.clock ?? systemClock, reached });
  }
  const [{ PostgresEngine }, { parsePostgresUrl }] = await Promise.all([
    import("./postgres/postgres-engine.ts"),
    import("./postgres/postgres-url.ts"),
  ]);
  return PostgresEngine.open({ address: parsePostgresUrl(location), random, reached });
}

export async function openStore(location: StoreLocation, options: StoreOptions = {}): Promise<Store> {
  const engine = await openEngine(location, options);
  const reached = options.reached ?? noCrashPoints;
  try {
    const schema = await migrate(engine, reached, MIGRATIONS, options.log);
    const ours = MIGRATIONS.at(-1)?.version ?? 0;
    if (schema > ours)
      options.log?.warn("a newer program has added to this database; this one works beside it until it is upgraded too", { schema, ours });
  } catch (error) {
    await engine.close();
    throw error;
  }
  return new Store(engine, options.random ?? systemRandom, reached);
}

import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { CRASH_POINTS, type CrashPoint } from "../../src/kernel/crash-points.ts";
import { type Random, seededRandom } from "../../src/kernel/random.ts";
import type { Store } from "../../src/store/store.ts";
import { type PostgresServer, startPostgres } from "../postgres-server.ts";
import { postgresPlace, type StorePlace, sqlitePlace } from "../stores.ts";
import { audit, Told, type Verdict } from "./store-audit.ts";
import type { WorkerPlan } from "./store-worker.ts";
import { type Limits, Victim } from "./victim.ts";

export interface ChaosOptions {
  /** The server does not wait for its disk, and all but the crash points are tried once. */
  readonly quick?: boolean;
  readonly database: "sqlite" | "postgres";
  readonly cycles: number;
  readonly seed: number;
  readonly progress: (line: string) => void;
}

export interface ChaosReport {
  readonly database: string;
  readonly seed: number;
  readonly cycles: Record<string, number>;
  readonly hits: Record<string, number>;
  readonly acknowledged: number;
  readonly refused: Record<string, number>;
  readonly verdict: Verdict;
  readonly victimErrors: readonly string[];
}

type Blow = "kill" | "crash point" | "migration" | "pause" | "disk full" | "no handles" | "server crash" | "backend kill";

const POINTS = CRASH_POINTS.filter((point) => /^(store\.(?!migrate)|queue|idempotency|ledger|blob)/.test(point));
const STATEMENTS = 20;
const TTL_MS = 400;
/** A fresh database after so many cycles keeps the audits quick. */
const CYCLES_PER_PLACE = 40;

const BLOWS: Record<ChaosOptions["database"], readonly Blow[]> = {
  sqlite: [
    "crash point",
    "kill",
    "crash point",
    "kill",
    "crash point",
    "kill",
    "migration",
    "pause",
    "crash point",
    "disk full",
    "kill",
    "no handles",
  ],
  postgres: [
    "crash point",
    "kill",
    "server crash",
    "crash point",
    "backend kill",
    "kill",
    "pause",
    "crash point",
    "migration",
    "no handles",
  ],
};

/** A crash of the server alone loses nothing that the machine still has; only a crash of the machine would. */
const FORGETFUL = { fsync: "off", full_page_writes: "off" };

/** Lives and deaths of victims on one database after another, with an audit at the end of each. */
export async function storeChaos(options: ChaosOptions): Promise<ChaosReport> {
  const server = options.database === "postgres" ? await startPostgres(options.quick ? FORGETFUL : {}) : undefined;
  const run = new ChaosRun(options, server);
  try {
    return await run.all();
  } finally {
    await server?.remove();
  }
}

class ChaosRun {
  readonly #options: ChaosOptions;
  readonly #server: PostgresServer | undefined;
  readonly #random: Random;
  readonly #cycles: Record<string, number> = {};
  readonly #hits: Record<string, number> = Object.fromEntries(POINTS.map((point) => [point, 0]));
  readonly #refused: Record<string, number> = {};
  readonly #errors: string[] = [];
  #verdict: Verdict = { lost: 0, duplicated: 0, halfApplied: 0, otherwise: 0, examples: [] };
  #acknowledged = 0;
  #cycle = 0;

  constructor(options: ChaosOptions, server: PostgresServer | undefined) {
    this.#options = options;
    this.#server = server;
    this.#random = seededRandom(options.seed);
  }

  async all(): Promise<ChaosReport> {
    while (this.#cycle < this.#options.cycles) await this.#place();
    const { database, seed } = this.#options;
    return {
      database,
      seed,
      cycles: this.#cycles,
      hits: this.#hits,
      acknowledged: this.#acknowledged,
      refused: this.#refused,
      verdict: this.#verdict,
      victimErrors: this.#errors,
    };
  }

  async #place(): Promise<void> {
    const place = this.#newPlace();
    const told = new Told();
    try {
      await this.#prepare(await place.open());
      for (let life = 0; life < CYCLES_PER_PLACE && this.#cycle < this.#options.cycles; life++) {
        const blows = BLOWS[this.#options.database];
        const blow = this.#options.quick ? this.#quickBlow() : (blows[this.#cycle % blows.length] as Blow);
        await this.#strike(blow, place, told);
        this.#cycles[blow] = (this.#cycles[blow] ?? 0) + 1;
        this.#cycle++;
        if (this.#cycle % 10 === 0) this.#options.progress(`${this.#cycle} of ${this.#options.cycles} cycles`);
      }
      const drainer = new Victim(this.#plan(place, "drain"), (said) => told.note(said));
      const drained = await Promise.race([drainer.ended, sleep(60_000).then(() => undefined)]);
      if (!drained) await drainer.kill();
      if (drained?.code !== 0) this.#errors.push(`the drain did not end well: ${drained?.errors ?? "it took too long"}`);
      this.#add(await audit(await place.open(), told, true));
      this.#acknowledged += told.acknowledged;
      for (const [code, count] of told.refusals) this.#refused[code] = (this.#refused[code] ?? 0) + count;
    } finally {
      await place.remove();
    }
  }

  #quickBlow(): Blow {
    const other = [...new Set(BLOWS[this.#options.database])].filter((blow) => blow !== "crash point");
    return other[(this.#cycle - 1) / 2] ?? "crash point";
  }

  async #strike(blow: Blow, place: StorePlace, told: Told): Promise<void> {
    const hear = told.note.bind(told);
    switch (blow) {
      case "migration":
        return this.#interruptMigration();
      case "crash point": {
        // The point that was hit least, so that all of them come up.
        const point = POINTS.reduce((a, b) => ((this.#hits[b] as number) < (this.#hits[a] as number) ? b : a)) as CrashPoint;
        const victim = new Victim(
          {
            ...this.#plan(place, "work"),
            crash: { point, hit: 1 + Math.floor(this.#random.fraction() * (this.#hits[point] === 0 ? 3 : 25)) },
          },
          hear,
        );
        const ended = await Promise.race([victim.ended, sleep(8_000).then(() => undefined)]);
        if (ended?.signal === "SIGKILL") this.#hits[point] = (this.#hits[point] as number) + 1;
        else await this.#finish(victim);
        return;
      }
      case "kill":
        return this.#live(place, hear, async () => {});
      case "pause":
        return this.#live(place, hear, async (victim) => {
          victim.signal("SIGSTOP");
          // On PostgreSQL a second node takes over what the stopped one holds; on SQLite it is alone with its file.
          const successor = place.kind === "postgres" ? new Victim(this.#plan(place, "work"), hear) : undefined;
          await sleep(TTL_MS * 2 + this.#random.fraction() * 200);
          if (successor) await successor.ready;
          victim.signal("SIGCONT");
          await sleep(150);
          if (successor) await this.#finish(successor);
        });
      case "disk full": {
        const path = place.location.slice("sqlite:".length);
        const size = Math.ceil(statSync(path).size / 1024);
        return this.#live(place, hear, () => sleep(300), { fileKib: Math.max(size, 1_200) });
      }
      case "no handles":
        return this.#live(place, hear, () => sleep(300), { openFiles: 64 }, true);
      case "server crash":
        return this.#live(place, hear, async () => {
          await this.#server?.stop("immediate");
          await sleep(this.#random.fraction() * 100);
          await this.#server?.start();
          await sleep(200);
        });
      case "backend kill":
        return this.#live(place, hear, () => this.#killBackends());
    }
  }

  /** A victim lives for a while, something is done to it, it lives a little longer, and is killed. */
  async #live(
    place: StorePlace,
    hear: Told["note"],
    middle: (victim: Victim) => Promise<unknown>,
    limits: Limits = {},
    exhaustHandles = false,
  ): Promise<void> {
    const victim = new Victim({ ...this.#plan(place, "work"), exhaustHandles }, hear, limits);
    await victim.ready;
    await sleep(20 + this.#random.fraction() * 150);
    await middle(victim);
    await sleep(this.#random.fraction() * 50);
    await this.#finish(victim);
  }

  async #finish(victim: Victim): Promise<void> {
    victim.signal("SIGKILL");
    const { signal, code, errors } = await victim.ended;
    if (signal !== "SIGKILL") this.#errors.push(`a victim ended by itself with ${code ?? signal}: ${errors.slice(0, 2_000)}`);
  }

  async #killBackends(): Promise<void> {
    const client = new pg.Client(this.#server?.url);
    await client.connect();
    for (let round = 0; round < 5; round++) {
      await client.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'guildhall' and random() < 0.5");
      await sleep(40);
    }
    await client.end();
  }

  async #interruptMigration(): Promise<void> {
    const place = this.#newPlace();
    try {
      const plan = this.#plan(place, "open");
      for (let life = 0; life < 3; life++) {
        const hit = 1 + Math.floor(this.#random.fraction() * (STATEMENTS / 3));
        await new Victim({ ...plan, crash: { point: "store.migrate.statement-done", hit } }, () => {}).ended;
      }
      const last = await new Victim(plan, () => {}).ended;
      if (last.code !== 0) this.#errors.push(`an interrupted migration did not resume: ${last.errors}`);
    } finally {
      await place.remove();
    }
  }

  #newPlace(): StorePlace {
    return this.#server ? postgresPlace(this.#server.url) : sqlitePlace();
  }

  #plan(place: StorePlace, mode: WorkerPlan["mode"]): WorkerPlan {
    const name = `${this.#options.seed}-${this.#cycle}-${Math.floor(this.#random.fraction() * 1e9).toString(36)}`;
    return { location: place.location, name, seed: Math.floor(this.#random.fraction() * 2 ** 31), life: this.#cycle, ttlMs: TTL_MS, mode };
  }

  async #prepare(store: Store): Promise<void> {
    await store.transact("tables", async (tx) => {
      if (store.kind === "sqlite") {
        await tx.run`create table chaos_effects (id integer primary key autoincrement, op text not null, fence bigint not null, lane text, lane_order bigint)`;
      } else {
        await tx.run`create table chaos_effects (id bigint generated by default as identity primary key, op text not null, fence bigint not null, lane text, lane_order bigint)`;
      }
      await tx.run`create table chaos_rows (op text primary key)`;
      await tx.run`create table chaos_counter (name text primary key, value bigint not null)`;
      await tx.run`insert into chaos_counter (name, value) values ('sum', 0)`;
    });
    await store.close();
  }

  #add(verdict: Verdict): void {
    const sum = this.#verdict;
    this.#verdict = {
      lost: sum.lost + verdict.lost,
      duplicated: sum.duplicated + verdict.duplicated,
      halfApplied: sum.halfApplied + verdict.halfApplied,
      otherwise: sum.otherwise + verdict.otherwise,
      examples: [...sum.examples, ...verdict.examples].slice(0, 10),
    };
  }
}

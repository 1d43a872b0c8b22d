import { setTimeout as sleep } from "node:timers/promises";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import { type Random, seededRandom } from "../../src/kernel/random.ts";
import { startPostgres } from "../postgres-server.ts";
import { postgresPlace } from "../stores.ts";
import { DaemonSeat, Talker } from "./http-processes.ts";
import type { ClientPlan, Told, Watched, WatchPlan } from "./http-records.ts";
import { judge, makePool, type RoundVerdict, sayLast, WATCH_UNTIL } from "./http-round.ts";
import { Wire } from "./http-wire.ts";

export interface ApiChaosOptions {
  readonly database: "sqlite" | "postgres";
  /** Deaths of daemons. */
  readonly cycles: number;
  readonly seed: number;
  /** A server that is there already. */
  readonly postgresUrl?: string;
  /** How long requests whose answer was lost are repeated at the end of a round. */
  readonly drainMs: number;
  /** Daemons at a time; without it, one and two in turn on PostgreSQL. */
  readonly daemons?: 1 | 2;
  readonly progress: (line: string) => void;
}

export interface ApiChaosReport {
  readonly database: string;
  readonly seed: number;
  readonly deaths: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}

const CLIENTS = ["ann", "ben", "cid"];
const HANDS = 2;
const DEATHS_PER_ROUND = 8;
const DEATHS_PER_GENERATION = 2;
const WATCHED_MS = 15_000;
const WORKED_MS = 10_000;
const EVERY_KIND: readonly Told["kind"][] = ["pair", "taken", "acked", "saw", "repeated"];
const POINTS: readonly CrashPoint[] = [
  "store.commit.before",
  "store.commit.after",
  "store.acknowledge.before",
  "idempotency.begun",
  "idempotency.finish.before",
];

/** Daemons are killed and come back while client processes work on them over HTTP; one round after another, each on a fresh database. */
export async function apiChaos(options: ApiChaosOptions): Promise<ApiChaosReport> {
  const own = options.database === "postgres" && !options.postgresUrl ? await startPostgres() : undefined;
  const random = seededRandom(options.seed);
  const deaths: Record<string, number> = {};
  const counts: Record<string, number> = {};
  const problems: string[] = [];
  try {
    for (let done = 0, round = 0; done < options.cycles; round++) {
      const count = Math.min(DEATHS_PER_ROUND, options.cycles - done);
      const daemons = options.database === "sqlite" ? 1 : (options.daemons ?? (round % 2 === 0 ? 2 : 1));
      const place = options.database === "postgres" ? postgresPlace(own?.url ?? options.postgresUrl) : undefined;
      const current = new Round(random, count, options.drainMs, deaths);
      try {
        const verdict = await current.run(daemons, place?.location);
        problems.push(...verdict.problems.map((problem) => `round ${round}, ${daemons} daemon(s): ${problem}`));
        for (const [name, amount] of Object.entries(verdict.counts)) counts[name] = (counts[name] ?? 0) + amount;
      } finally {
        await current.remove();
        await place?.remove();
      }
      done += count;
      options.progress(`${done} of ${options.cycles} deaths, ${problems.length} problems`);
    }
  } finally {
    await own?.remove();
  }
  return { database: options.database, seed: options.seed, deaths, counts, problems };
}

/** What is rare must not be missing from a short run by chance alone. */
function everyKindSeen(told: readonly Told[]): boolean {
  const seen = new Set<Told["kind"]>();
  for (const each of told) {
    const counts =
      each.kind === "taken" ? each.fresh : each.kind === "acked" ? each.outcome === "done" : each.kind !== "saw" || each.state !== "open";
    if (counts) seen.add(each.kind);
  }
  return EVERY_KIND.every((kind) => seen.has(kind));
}

class Round {
  readonly #random: Random;
  readonly #count: number;
  readonly #drainMs: number;
  readonly #deaths: Record<string, number>;
  readonly #seats: DaemonSeat[] = [];
  readonly #clients: Talker<Told>[] = [];
  readonly #told: Told[] = [];
  readonly #watched: Watched[] = [];
  #watcher: Talker<Watched> | undefined;

  constructor(random: Random, count: number, drainMs: number, deaths: Record<string, number>) {
    this.#random = random;
    this.#count = count;
    this.#drainMs = drainMs;
    this.#deaths = deaths;
  }

  async run(daemons: number, store: string | undefined): Promise<RoundVerdict> {
    for (let index = 0; index < daemons; index++) {
      const seat = await DaemonSeat.make(store);
      this.#seats.push(seat);
      await seat.start();
    }
    const urls = this.#seats.map((seat) => seat.url);
    // Every home has an operator's token of its own.
    const operator = new Wire(urls.slice(0, 1), (this.#seats[0] as DaemonSeat).token);
    const generations = Math.ceil(this.#count / DEATHS_PER_GENERATION) + 1;
    await makePool(operator, generations);
    await this.#send(operator, urls);
    for (let death = 1; death <= this.#count; death++) {
      await this.#strike();
      if (death % DEATHS_PER_GENERATION === 0)
        for (const client of this.#clients) client.say(`generation ${death / DEATHS_PER_GENERATION}`);
    }
    for (const seat of this.#seats) if (seat.crash) await this.#revive(seat);
    await this.#until(() => everyKindSeen(this.#told));
    for (const client of this.#clients) client.say("drain");
    const ends = await Promise.all(this.#clients.map((client) => client.ended));
    await sayLast(operator);
    const problems = ends.flatMap(({ code, errors }) => (code === 0 ? [] : [`a client ended with ${code}: ${errors}`]));
    const seen = await Promise.race([this.#watcher?.ended, sleep(WATCHED_MS, "late" as const, { ref: false })]);
    if (seen === "late") problems.push(`V5 the watcher has not seen the last write after ${WATCHED_MS} ms`);
    const verdict = await judge(operator, this.#told, this.#watched, generations);
    operator.close();
    return { ...verdict, problems: [...problems, ...verdict.problems] };
  }

  async remove(): Promise<void> {
    await Promise.all([...this.#clients, ...(this.#watcher ? [this.#watcher] : [])].map((process) => process.kill()));
    for (const seat of this.#seats) await seat.remove();
  }

  async #send(operator: Wire, urls: readonly string[]): Promise<void> {
    const tokenOf = async (name: string): Promise<string> =>
      (await operator.insist("POST", "/api/tokens", { body: { scope: `guest:${name}` } })).body.token as string;
    for (const name of CLIENTS) {
      const seed = Math.floor(this.#random.fraction() * 2 ** 31);
      const plan: ClientPlan = { urls, token: await tokenOf(name), name, names: CLIENTS, seed, hands: HANDS, drainMs: this.#drainMs };
      this.#clients.push(new Talker<Told>("client", plan, (told) => this.#told.push(told)));
    }
    const plan: WatchPlan = { urls, token: await tokenOf("watcher"), last: WATCH_UNTIL };
    this.#watcher = new Talker<Watched>("watch", plan, (watched) => this.#watched.push(watched));
  }

  /** One of the daemons dies: of its crash point if it has one, else at a random moment; sometimes once more while it starts. */
  async #strike(): Promise<void> {
    const seat = this.#seats[Math.floor(this.#random.fraction() * this.#seats.length)] as DaemonSeat;
    await this.#worked(40 + this.#random.fraction() * 120);
    const hit = seat.crash && (await seat.died(3_000)) ? seat.crash.point : undefined;
    await seat.kill();
    this.#note(hit ?? "at any moment");
    await sleep(this.#random.fraction() * 150);
    if (this.#random.fraction() < 0.2) {
      const starting = seat.start();
      await sleep(this.#random.fraction() * 500);
      await seat.kill();
      if (!(await starting)) this.#note("while starting");
    }
    const point = POINTS[Math.floor(this.#random.fraction() * POINTS.length)] as CrashPoint;
    const crash = this.#random.fraction() < 0.5 ? { point, hit: 1 + Math.floor(this.#random.fraction() * 80) } : undefined;
    if (await seat.start(crash)) return;
    this.#note(point);
    await seat.start();
  }

  /** When the clients have done so much more, so that a slow machine has no emptier histories than a quick one. */
  async #worked(amount: number): Promise<void> {
    const goal = this.#told.length + amount;
    await this.#until(() => this.#told.length >= goal);
  }

  async #until(reached: () => boolean): Promise<void> {
    const latest = performance.now() + WORKED_MS;
    while (!reached() && performance.now() < latest) await sleep(10);
  }

  async #revive(seat: DaemonSeat): Promise<void> {
    await seat.kill();
    await seat.start();
  }

  #note(how: string): void {
    this.#deaths[how] = (this.#deaths[how] ?? 0) + 1;
  }
}

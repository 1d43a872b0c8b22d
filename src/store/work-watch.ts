import type { Engine, Tx } from "./engine.ts";
import { sql } from "./sql.ts";

/**
 * Whether somebody on this node takes work of this kind and tenant as soon as it is there. Without a tenant: whosever it is; without a kind,
 * whatever it is.
 */
export type Takes = (kind?: string, tenant?: string | null) => boolean;

/** What every node asks about work, each second, in the one statement that asks for all that may be due. */
export interface WorkLook {
  readonly ready: number;
  readonly due_in: number | null;
}

/** What was added a moment ago is in the hands of whoever added it: he has a place for it, or has told the others. */
const IN_HANDS_MS = 100;

export const WORK_LOOK = sql`
  case when exists (select 1 from work where state = 'ready' and run_at <= now_ms() - ${IN_HANDS_MS}) then 1 else 0 end as ready,
  (select min(run_at) from work where state = 'parked') - now_ms() as due_in`;

/** Claims whose owner was not heard of in time, and what was parked until now: for whoever reaps. */
export const WORK_LEFT = sql`(select min(lease_until) from work where state = 'running') <= now_ms()
  or (select min(run_at) from work where state = 'parked') <= now_ms()`;

/** Longer than between two pulses: only where nobody has a pulse, or it is late, whoever waits looks for himself. */
const LOOK_MS = 1_250;
/** Nobody minds whether what was parked for longer than this comes a second late. */
const ON_TIME_MS = 60_000;
/** Until then what has parked something is committed. */
const COMMITTED_MS = 20;
/** Of two clocks and of a timer. */
const EARLY_MS = 2;
const SOON_MS = 100;
/** How often a node that is full says so, for as long as it is. */
const OFFER_MS = 250;

/**
 * How a node learns of work without asking all the time. What is added where there is a place for it wakes that node alone; others are told only
 * of what this one cannot take. A hint is never the truth: what nobody was told of, or was told to a node that has died, is found by the next
 * look of every other.
 */
export class WorkWatch {
  readonly #engine: Engine;
  readonly #wakeDue: () => Promise<unknown>;
  readonly #takers = new Set<Takes>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  #waiting = 0;
  #offering: NodeJS.Timeout | undefined;
  #offersAgain = false;

  /** `wakeDue`: makes ready what was parked until now, and tells of it. */
  constructor(engine: Engine, wakeDue: () => Promise<unknown>) {
    this.#engine = engine;
    this.#wakeDue = wakeDue;
  }

  /** Until the answer is called. */
  addTaker(takes: Takes): () => void {
    this.#takers.add(takes);
    return () => void this.#takers.delete(takes);
  }

  /** Something has become ready. */
  tell(tx: Tx, kind?: string, tenant?: string | null): void {
    tx.hint("work", this.#isTaken(kind, tenant) ? "here" : "everywhere");
  }

  /** Something was parked for this long. It is found on time by this node; by the others with their next look. */
  dueIn(ms: number): void {
    if (ms > ON_TIME_MS) return;
    const timer = setTimeout(() => {
      if (this.#takers.size > 0 || this.#waiting > 0) this.#look().catch(() => {});
    }, Math.max(ms, COMMITTED_MS) + EARLY_MS);
    timer.unref();
  }

  /** This node has taken all that it may have at once, and there may be more. */
  offer(): void {
    if (this.#offering) {
      this.#offersAgain = true;
      return;
    }
    this.#offersAgain = false;
    this.#engine.hintOthers("work");
    this.#offering = setTimeout(() => {
      this.#offering = undefined;
      if (this.#offersAgain && !this.#isTaken()) this.offer();
    }, OFFER_MS);
    this.#offering.unref();
  }

  /** What the pulse was told. Whoever has a pulse wakes what is due himself. */
  heard({ ready }: Pick<WorkLook, "ready">): void {
    this.#lookedAt = performance.now();
    if (ready === 1) this.#engine.wake.hint("work");
  }

  /** Resolves when there may be something to claim. `seen` is the version before the last look. */
  async wait(seen: number, signal: AbortSignal): Promise<void> {
    const { wake } = this.#engine;
    this.#waiting++;
    try {
      while (!signal.aborted && wake.version("work") === seen) {
        const fresh = this.#lookedAt + LOOK_MS - performance.now();
        if (fresh <= 0) await this.#look();
        else await wake.wait("work", seen, fresh, signal);
      }
    } finally {
      this.#waiting--;
    }
  }

  #isTaken(kind?: string, tenant?: string | null): boolean {
    const takers = [...this.#takers];
    return kind === undefined ? takers.length > 0 && takers.every((takes) => takes()) : takers.some((takes) => takes(kind, tenant));
  }

  /** One for all who wait. */
  #look(): Promise<void> {
    this.#looking ??= (async () => {
      try {
        const look = (await this.#engine.reads.get<WorkLook>`select ${WORK_LOOK}`) as WorkLook;
        const { due_in: dueIn } = look;
        this.heard(look);
        if (dueIn === null) return;
        if (dueIn > 0) {
          if (dueIn <= SOON_MS) this.dueIn(dueIn);
        } else await this.#wakeDue();
      } finally {
        this.#looking = undefined;
      }
    })();
    return this.#looking;
  }
}

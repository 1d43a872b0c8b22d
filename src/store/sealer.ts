import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEvent } from "../contract/events.ts";
import { canonicalJson } from "../kernel/canonical-json.ts";
import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { Engine, Reads } from "./engine.ts";
import type { Leases } from "./leases.ts";
import { type Ledger, readEvents } from "./ledger.ts";
import { sql } from "./sql.ts";

const LEASE = ["ledger", "sealer"];
const LEASE_MS = 15_000;
const PAGE = 1_000;
/** Read and hashed at once: a fraction of a millisecond. Of a long backlog more, so that its seals keep up with its writers. */
const SLICE = 10;
const SLICES = 50;
const LARGEST_SLICE = 250;
/** Between two slices: one after the other they would lie between all steps of a turn, and make it last as long as they do. */
const PAUSE_MS = 5;

/** One node after another: where each of several sealed every second what had come since the one before, they took as long as the writers. */
const APART_MS = 900;

/** Events without a seal, where nobody has sealed a moment ago. */
export const UNSEALED = sql`(select max(seq) from ledger) > coalesce((select last_seq from seals order by id desc limit 1), 0)
  and coalesce((select at from seals order by id desc limit 1), 0) <= now_ms() - ${APART_MS}`;

interface SealRow {
  readonly id: number;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly count: number;
  readonly previous: string;
  readonly hash: string;
}

export interface LedgerCheck {
  readonly ok: boolean;
  readonly seals: number;
  readonly events: number;
  /** Where the chain breaks: the range of events that was changed, removed or added to. */
  readonly broken?: { readonly firstSeq: number; readonly lastSeq: number };
}

/**
 * Chains hashes behind the safe horizon, so that writers never wait for it: each seal covers a run of events and the seal before.
 * Whoever gets the lease seals; the fence is checked in the seal's own transaction.
 */
export class Sealer {
  readonly #engine: Engine;
  readonly #ledger: Ledger;
  readonly #leases: Leases;
  readonly #reached: ReachedPoint;

  constructor(engine: Engine, ledger: Ledger, leases: Leases, reached: ReachedPoint) {
    this.#engine = engine;
    this.#ledger = ledger;
    this.#leases = leases;
    this.#reached = reached;
  }

  /** Seals all that can be sealed now and answers how many events that were; 0 also when another node is at it. */
  async seal(holder: string): Promise<number> {
    const backlog = (await this.#ledger.horizon()) - ((await lastSeal(this.#engine.reads))?.last_seq ?? 0);
    if (backlog <= 0) return 0;
    const slice = Math.min(LARGEST_SLICE, Math.max(SLICE, Math.ceil(backlog / SLICES)));
    const lease = await this.#leases.acquire(LEASE, holder, LEASE_MS);
    if (!lease.held) return 0;
    let total = 0;
    try {
      while (true) {
        const count = await this.#sealPage(lease.fence, slice);
        total += count;
        if (count < PAGE || (await this.#leases.renew(LEASE, lease.fence, LEASE_MS)) === null) return total;
      }
    } finally {
      await this.#leases.release(LEASE, lease.fence);
    }
  }

  async verify(): Promise<LedgerCheck> {
    return this.#engine.snapshot(async (reads) => {
      let previous = "";
      let last = Number.MIN_SAFE_INTEGER;
      let events = 0;
      for (let id = 1; ; id++) {
        const seal = await reads.get<SealRow>`select id, first_seq, last_seq, count, previous, hash from seals where id = ${id}`;
        if (!seal) return { ok: true, seals: id - 1, events };
        const covered = await readEvents(reads, sql`seq > ${last} and seq <= ${seal.last_seq}`, seal.count + 1);
        if (covered.length !== seal.count || seal.previous !== previous || chain(previous, covered) !== seal.hash) {
          return { ok: false, seals: id - 1, events, broken: { firstSeq: seal.first_seq, lastSeq: seal.last_seq } };
        }
        events += covered.length;
        previous = seal.hash;
        last = seal.last_seq;
      }
    });
  }

  async #sealPage(fence: number, slice: number): Promise<number> {
    const last = await lastSeal(this.#engine.reads);
    const previous = last?.hash ?? "";
    const chained = new Chain(previous);
    for (let from = last?.last_seq ?? 0; chained.count < PAGE; from = chained.newest) {
      const events = await this.#ledger.read(from, Math.min(slice, PAGE - chained.count));
      for (const event of events) chained.add(event);
      if (events.length < slice) break;
      await sleep(PAUSE_MS);
    }
    const { count, first, newest } = chained;
    if (count === 0) return 0;
    const hash = chained.hash();
    return this.#engine.transact(
      "seal ledger",
      async (tx) => {
        await this.#leases.guard(tx, LEASE, fence);
        this.#reached("ledger.seal.before");
        await tx.run`insert into seals (id, first_seq, last_seq, count, previous, hash, at)
          values (${(last?.id ?? 0) + 1}, ${first}, ${newest}, ${count}, ${previous}, ${hash}, now_ms())`;
        return count;
      },
      "locked",
    );
  }
}

/** How many events no seal covers yet; about, since a number that was drawn and not used counts too. */
export async function countUnsealed(reads: Reads): Promise<number> {
  const row = await reads.get<{ count: number }>`select coalesce((select max(seq) from ledger), 0)
    - coalesce((select last_seq from seals order by id desc limit 1), 0) as count`;
  return Math.max(0, row?.count ?? 0);
}

function lastSeal(reads: Reads): Promise<SealRow | undefined> {
  return reads.get<SealRow>`select id, first_seq, last_seq, count, previous, hash from seals order by id desc limit 1`;
}

function chain(previous: string, events: readonly LedgerEvent[]): string {
  const chained = new Chain(previous);
  for (const event of events) chained.add(event);
  return chained.hash();
}

/** Its canonical JSON, without a sorted copy of every event. */
function inOrder({ actor, at, causedBy, data, seq, subject, type }: LedgerEvent): string {
  const [by, about, kind] = [JSON.stringify(actor), JSON.stringify(subject), JSON.stringify(type)];
  return `{"actor":${by},"at":${at},"causedBy":${causedBy},"data":${canonicalJson(data)},"seq":${seq},"subject":${about},"type":${kind}}`;
}

/** The hash of a seal, event by event. */
class Chain {
  readonly #hash = createHash("sha256");
  count = 0;
  first = 0;
  newest = 0;

  constructor(previous: string) {
    this.#hash.update(`${previous}\n`);
  }

  add(event: LedgerEvent): void {
    if (this.count === 0) this.first = event.seq;
    this.#hash.update(`${this.count === 0 ? "" : "\n"}${inOrder(event)}`);
    this.newest = event.seq;
    this.count++;
  }

  hash(): string {
    return this.#hash.digest("hex");
  }
}

import type { Store } from "../../src/store/store.ts";
import type { Acknowledgement } from "./store-worker.ts";

/** What the outside was told, over all lives of the victims. */
export class Told {
  readonly wrote = new Map<string, number>();
  readonly did = new Set<string>();
  readonly answers = new Map<string, number>();
  readonly stored = new Map<string, string>();
  readonly problems: string[] = [];
  readonly refusals = new Map<string, number>();
  /** The highest fence of each lease, of all and as each victim must have found it: two victims may be heard out of order. */
  readonly #highest = new Map<string, number>();
  readonly #seenBy = new Map<string, Map<string, number>>();
  tried = 0;
  counted = 0;
  leased = 0;

  note({ kind, op, value }: Acknowledgement): void {
    switch (kind) {
      case "tried":
        this.tried++;
        return;
      case "counted":
        this.counted++;
        return;
      case "wrote":
        this.wrote.set(op, value as number);
        return;
      case "did":
        if (this.did.has(op)) this.problems.push(`duplicated: ${op} was reported done twice`);
        this.did.add(op);
        return;
      case "answered": {
        const before = this.answers.get(op);
        if (before !== undefined && before !== value) this.problems.push(`duplicated: ${op} was answered ${before} and then ${value}`);
        this.answers.set(op, value as number);
        return;
      }
      case "leased":
        this.#leased(op, value as { by: string; fence: number });
        return;
      case "stored":
        this.stored.set(op, value as string);
        return;
      case "refused":
        this.refusals.set(value as string, (this.refusals.get(value as string) ?? 0) + 1);
        return;
      case "ready":
        this.#seenBy.set(op, new Map(this.#highest));
        return;
    }
  }

  #leased(name: string, { by, fence }: { by: string; fence: number }): void {
    const seen = this.#seenBy.get(by) ?? new Map<string, number>();
    const before = seen.get(name) ?? 0;
    if (fence <= before) this.problems.push(`fence went back: ${name} from ${before} to ${fence}`);
    seen.set(name, fence);
    this.#highest.set(name, Math.max(fence, this.#highest.get(name) ?? 0));
    this.leased++;
  }

  get acknowledged(): number {
    return this.wrote.size + this.did.size + this.answers.size + this.counted + this.leased + this.stored.size;
  }
}

export interface Verdict {
  readonly lost: number;
  readonly duplicated: number;
  readonly halfApplied: number;
  readonly otherwise: number;
  readonly examples: readonly string[];
}

/** Compares what was told with what is there, through the store's own eyes and by plain counting. */
export async function audit(store: Store, told: Told, drained: boolean): Promise<Verdict> {
  const names = (rows: readonly { op: string }[]) => new Set(rows.map((row) => row.op));
  const lost: string[] = [];
  const duplicated = told.problems.filter((problem) => problem.startsWith("duplicated"));
  const half: string[] = [];
  const otherwise = told.problems.filter((problem) => !problem.startsWith("duplicated"));

  const rows = names(await store.read.all<{ op: string }>`select op from chaos_rows`);
  const events = await store.read.all<{ seq: number; subject: string }>`select seq, subject from ledger where type = 'message.admitted'`;
  const eventOf = new Map(events.map((event) => [event.subject.split("/")[1] as string, event.seq]));
  const jobs = new Set(
    (await store.read.all<{ payload: string }>`select payload from work where kind = 'job'`).map(
      (row) => (JSON.parse(row.payload) as { op: string }).op,
    ),
  );
  const effects = await store.read.all<{
    op: string;
    lane: string | null;
    lane_order: number;
  }>`select op, lane, lane_order from chaos_effects order by id`;
  const effectCounts = new Map<string, number>();
  for (const { op } of effects) effectCounts.set(op, (effectCounts.get(op) ?? 0) + 1);

  for (const [op, seq] of told.wrote) {
    if (!rows.has(op)) lost.push(`write ${op}`);
    else if (eventOf.get(op) !== seq) half.push(`event of ${op}`);
  }
  for (const op of new Set([...rows, ...eventOf.keys()])) {
    if (!rows.has(op) || !eventOf.has(op)) half.push(`${op} is not whole`);
    // Its job is either waiting or done, never both and never neither.
    else if (jobs.has(op) === effectCounts.has(op))
      half.push(`${op} has ${jobs.has(op) ? "a job and its effect" : "neither job nor effect"}`);
  }
  for (const [op, count] of effectCounts) if (count > 1) duplicated.push(`effect of ${op} ${count} times`);
  for (const op of told.did) if (!effectCounts.has(op)) lost.push(`effect of ${op}`);
  for (const key of told.answers.keys()) if (!effectCounts.has(key)) lost.push(`effect of ${key}`);
  const counter = (await store.read.get<{ value: number }>`select value from chaos_counter where name = 'sum'`)?.value ?? 0;
  if (counter < told.counted) lost.push(`${told.counted - counter} increments`);
  if (counter > told.tried) duplicated.push(`${counter - told.tried} increments`);
  for (const [op, hash] of told.stored) {
    const bytes = await store.blobs.get(hash);
    if (!bytes || Buffer.from(bytes).toString() !== op.repeat(50)) lost.push(`blob of ${op}`);
  }
  const last = new Map<string, number>();
  for (const { op, lane, lane_order: order } of effects) {
    if (lane === null || lane === undefined) continue;
    if (order < (last.get(lane) ?? -1)) otherwise.push(`lane order: ${op} ran after number ${last.get(lane)}`);
    last.set(lane, order);
  }
  const chain = await store.sealer.verify();
  if (!chain.ok) otherwise.push(`the ledger's chain is broken at ${JSON.stringify(chain.broken)}`);
  if (drained && jobs.size > 0) otherwise.push(`${jobs.size} jobs were left`);
  return {
    lost: lost.length,
    duplicated: duplicated.length,
    halfApplied: half.length,
    otherwise: otherwise.length,
    examples: [...lost, ...duplicated, ...half, ...otherwise].slice(0, 10),
  };
}

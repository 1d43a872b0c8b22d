import type { NodeList, NodeView, OrphanedWork, WaitingWork } from "../contract/nodes.ts";
import { ACCOUNT_LEASES } from "../records/channels/channel-accounts.ts";
import { listNodes, type NodeRow } from "../records/nodes/nodes.ts";
import type { Reads } from "../store/engine.ts";
import { heldUnder } from "../store/leases.ts";
import { countUnsealed } from "../store/sealer.ts";
import { countWork, type WorkCount } from "../store/work-counts.ts";
import { DELIVERY_WORK, REMOTE_WORK, TURN_WORK } from "./work-kinds.ts";

/**
 * Who is there and what each of them holds, what waits, and what nobody holds who is alive. A handful of statements, however many nodes.
 * `missing`: what agents wait for, where that is known.
 */
export async function viewNodes(reads: Reads, here: string, missing: NodeList["missing"] = []): Promise<NodeList> {
  const moment = await reads.get<{ now: number; revision: number }>`select now_ms() as now,
    (select coalesce(max(number), 0) from config_revisions where state = 'applied') as revision`;
  const rows = await listNodes(reads);
  const work = await countWork(reads);
  const accounts = await heldUnder(reads, ACCOUNT_LEASES);
  const { now = 0, revision = 0 } = moment ?? {};
  const held = work.filter(({ state }) => state === "running");
  return {
    now,
    here,
    revision,
    nodes: rows.map((row) =>
      viewOf(
        row,
        now,
        held.filter(({ owner }) => owner === row.id),
        accounts.filter(({ holder }) => holder === row.id).map(({ name: [, platform = "", account = ""] }) => ({ platform, account })),
      ),
    ),
    waiting: waitingOf(work, now),
    orphaned: orphansOf(held, rows),
    missing,
    unsealed: await countUnsealed(reads),
  };
}

function viewOf(row: NodeRow, now: number, held: readonly WorkCount[], accounts: NodeView["accounts"]): NodeView {
  const { id, name, version, url, labels, startedAt, seenAt, leaseMs, revision, problem, taken } = row;
  const count = (kind: string): number => total(held.filter((each) => each.kind === kind));
  return {
    id,
    name,
    state: !row.isAlive || row.state === "lost" ? "gone" : row.state,
    version,
    url,
    labels: [...labels],
    startedAt,
    seenAt,
    lagMs: Math.max(0, now - seenAt),
    leaseMs,
    revision,
    problem,
    turns: count(TURN_WORK),
    deliveries: count(DELIVERY_WORK),
    remote: count(REMOTE_WORK),
    oldestSince: held.length === 0 ? null : Math.min(...held.map(({ since }) => since)),
    accounts,
    taken,
  };
}

function waitingOf(work: readonly WorkCount[], now: number): WaitingWork[] {
  const kinds = [...new Set(work.filter(({ state }) => state !== "running").map(({ kind }) => kind))];
  return kinds.map((kind) => {
    const of = (wanted: WorkCount["state"]): WorkCount[] => work.filter(({ kind: its, state }) => its === kind && state === wanted);
    const ready = of("ready");
    return {
      kind,
      ready: total(ready),
      queued: total(of("queued")),
      parked: total(of("parked")),
      dead: total(of("dead")),
      oldestMs: ready.length === 0 ? null : Math.max(0, now - Math.min(...ready.map(({ since }) => since))),
    };
  });
}

/** Of owners that are gone, or that nobody knows any more. */
function orphansOf(held: readonly WorkCount[], rows: readonly NodeRow[]): OrphanedWork[] {
  const alive = new Set(rows.filter(({ isAlive }) => isAlive).map(({ id }) => id));
  const names = new Map(rows.map(({ id, name }) => [id, name]));
  const owners = new Map<string, OrphanedWork>();
  for (const { owner, count, until } of held) {
    if (owner === null || alive.has(owner)) continue;
    const known = owners.get(owner) ?? { node: owner, name: names.get(owner) ?? null, count: 0, until: 0 };
    owners.set(owner, { ...known, count: known.count + count, until: Math.max(known.until, until ?? 0) });
  }
  return [...owners.values()];
}

function total(counts: readonly WorkCount[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0);
}

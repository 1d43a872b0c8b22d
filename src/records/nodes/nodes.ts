import { Failure } from "../../kernel/failure.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { code, type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { heldBy } from "../../store/work-counts.ts";

/** This process, as the others see it. */
export interface ThisNode {
  /** Of this life of the node: what it claims is claimed under it, and no later life is taken for it. */
  readonly id: string;
  /** What the operator calls it: the same after a restart. */
  readonly name: string;
  /** Of the home, which one process at a time has: whoever else had it is dead. */
  readonly home: string;
  readonly version: string;
  readonly url: string;
  /** What `nodes:` of an agent may name, beside the name. */
  readonly labels: readonly string[];
  /** Not heard of for this long, it is gone. */
  readonly leaseMs: number;
}

/** What a node says each time. */
export interface NodeState {
  readonly state: "up" | "draining";
  /** Of the config, as this node runs it. */
  readonly revision: number;
  /** Why it runs another one than the newest; null where it does not. */
  readonly problem: string | null;
}

export interface NodeRow extends ThisNode, Omit<NodeState, "state"> {
  /** `lost`: it was not heard of for its lease, and that was told. */
  readonly state: NodeState["state"] | "lost";
  readonly startedAt: number;
  readonly seenAt: number;
  readonly isAlive: boolean;
  /** Claims that others have taken over from it. */
  readonly taken: number;
}

interface StoredNode extends Omit<NodeRow, "labels" | "startedAt" | "seenAt" | "leaseMs" | "isAlive"> {
  readonly labels: string;
  readonly started_at: number;
  readonly seen_at: number;
  readonly lease_ms: number;
  readonly alive: number;
}

type EndedNode = Pick<StoredNode, "id" | "name" | "home" | "state" | "seen_at" | "taken">;

/** One that is gone is shown this long. */
const SHOWN_MS = 24 * 60 * 60_000;
export const IS_GONE = code("seen_at + lease_ms <= now_ms()");
const IS_OLD = code(`seen_at < now_ms() - ${SHOWN_MS}`);

/**
 * Adds this node, unless one of its name is alive elsewhere: nobody could tell which of the two an agent is bound to. Answers the lives of
 * this home before: they have ended, whatever their leases say.
 */
export async function joinNodes(store: Store, node: ThisNode, now: NodeState): Promise<string[]> {
  return store.transact("join nodes", async (tx) => {
    const other = await tx.get<{
      url: string;
    }>`select url from nodes where name = ${node.name} and home <> ${node.home} and not (${IS_GONE})`;
    // A file has one daemon, whatever a restored one says.
    if (other && store.kind !== "sqlite")
      throw new Failure("node.name_taken", `a node named "${node.name}" is alive, at ${other.url}`, {
        hint: "Give this one another name with --name, or wait until the other is gone.",
      });
    const before = await tx.all<EndedNode>`delete from nodes where name = ${node.name} or home = ${node.home}
      returning id, name, home, state, seen_at, taken`;
    const ended = before.filter(({ id }) => id !== node.id);
    await tellLost(store, tx, ended, node.id);
    await tx.run`insert into nodes (id, name, home, version, url, labels, state, started_at, seen_at, lease_ms, revision, problem)
      values (${node.id}, ${node.name}, ${node.home}, ${node.version}, ${node.url}, ${JSON.stringify(node.labels)}, ${now.state}, now_ms(),
        now_ms(), ${node.leaseMs}, ${now.revision}, ${now.problem})`;
    const { id, name, version, url, labels } = node;
    await store.ledger.append(tx, { type: "node.joined", actor: id, subject: ["node", id], data: { name, version, url, labels } });
    // One of the same name elsewhere may only have been cut off: what it holds is its own until its leases end.
    return ended.filter(({ home }) => home === node.home).map((each) => each.id);
  });
}

/** Says that it is there. Answers false where it was taken for lost meanwhile: it must join again. */
export async function sayAlive(store: Store, id: string, now: NodeState): Promise<boolean> {
  const changed = await store.single(
    "say alive",
    (tx) => tx.run`update nodes set seen_at = now_ms(), state = ${now.state}, revision = ${now.revision}, problem = ${now.problem}
      where id = ${id} and state <> 'lost'`,
  );
  return changed > 0;
}

export async function leaveNodes(store: Store, id: string): Promise<void> {
  await store.transact("leave nodes", async (tx) => {
    const [left] = await tx.all<EndedNode>`delete from nodes where id = ${id} returning id, name, home, state, seen_at, taken`;
    if (left && left.state !== "lost")
      await store.ledger.append(tx, { type: "node.left", actor: id, subject: ["node", id], data: { name: left.name } });
  });
}

/** Those that are alive first, then by name. */
export async function listNodes(reads: Reads): Promise<NodeRow[]> {
  const rows = await reads.all<StoredNode>`select id, name, home, version, url, labels, state, started_at, seen_at, lease_ms, revision,
      problem, taken, case when ${IS_GONE} then 0 else 1 end as alive
    from nodes order by alive desc, name, started_at`;
  return rows.map(({ labels, started_at, seen_at, lease_ms, alive, ...row }) => ({
    ...row,
    labels: JSON.parse(labels) as string[],
    startedAt: started_at,
    seenAt: seen_at,
    leaseMs: lease_ms,
    isAlive: alive === 1,
  }));
}

/** Others have taken over so many claims of each of these. */
export async function noteTakeovers(store: Store, taken: ReadonlyMap<string, number>): Promise<void> {
  await store.transact("note takeovers", async (tx) => {
    // In one order, so that two who have taken from the same do not wait for each other.
    for (const [id, count] of [...taken].toSorted(([a], [b]) => (a < b ? -1 : 1)))
      await tx.run`update nodes set taken = taken + cast(${count} as bigint) where id = ${id}`;
  });
}

/** For the pulse: whether there are such, seen by this node. */
export function nodesGone(by: string): SqlFragment {
  return sql`exists (select 1 from nodes where id <> ${by} and ${IS_GONE} and (state <> 'lost' or ${IS_OLD}))`;
}

/**
 * Tells of those that were not heard of for their lease, each of them once, whoever comes first; forgets those that are gone for long. `by`: the
 * node that looks, which is there.
 */
export async function sweepNodes(store: Store, by: string): Promise<void> {
  if (!(await store.read.get`select 1 where ${nodesGone(by)}`)) return;
  await store.transact("sweep nodes", async (tx) => {
    const lost = await tx.all<EndedNode>`update nodes set state = 'lost' where id <> ${by} and ${IS_GONE} and state <> 'lost'
      returning id, name, home, 'up' as state, seen_at, taken`;
    await tellLost(store, tx, lost, by);
    await tx.run`delete from nodes where id <> ${by} and ${IS_OLD}`;
  });
}

/** Those of whom it was told already are left out. */
async function tellLost(store: Store, tx: Tx, ended: readonly EndedNode[], by: string): Promise<void> {
  const lost = ended.filter(({ state }) => state !== "lost");
  if (lost.length === 0) return;
  const held = await heldBy(
    tx,
    lost.map(({ id }) => id),
  );
  await store.ledger.append(
    tx,
    ...lost.map(({ id, name, seen_at, taken }) => ({
      type: "node.lost" as const,
      actor: by,
      subject: ["node", id],
      // What was taken over before anybody noticed was held as well.
      data: { name, seenAt: seen_at, held: (held.get(id) ?? 0) + taken },
    })),
  );
}

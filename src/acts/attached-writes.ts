import type { NewProposal, Pin, ProposedWrite } from "../contract/proposals.ts";
import type { Caller } from "../kernel/caller.ts";
import { Failure } from "../kernel/failure.ts";
import type { HeldProposal } from "../records/agreements/proposal-rows.ts";
import { type Grant, refuseUndeclared } from "../records/pools/access.ts";
import type { PoolWrite } from "../records/pools/decide-write.ts";
import type { Pools } from "../records/pools/pools.ts";
import type { Tx } from "../store/engine.ts";

/**
 * The pins the proposal stands on: those it names, and what each attached write would replace, as it is now. A pin that has moved
 * already, and a write that is not the proposer's to make, are told at once; whether the value is good is asked when it is decided.
 */
export async function pinsOf(tx: Tx, pools: Pools, caller: Caller, draft: NewProposal, grant?: Grant): Promise<Pin[]> {
  for (const { key } of draft.writes) refuseUndeclared(grant, "writes", key);
  for (const { key } of draft.pins) refuseUndeclared(grant, "reads", key);
  const wanted: WantedPin[] = [
    ...draft.pins,
    ...draft.writes.map(({ pool, key, if_version }) => ({ pool, key, version: if_version, write: true })),
  ];
  const pins: Pin[] = [];
  for (const [pool, group] of byPool(wanted)) {
    const written = group.filter((pin) => pin.write).map((pin) => pin.key);
    if (written.length > 0) await pools.refuseWriterIn(tx, caller, pool, written);
    const versions = await pools.currentVersionsIn(tx, caller, pool, keysOf(group), false);
    for (const pin of group) {
      const current = versions.get(pin.key) ?? null;
      if (pin.version !== undefined && pin.version !== current) throw moved({ ...pin, version: pin.version }, current);
      if (!pins.some((known) => known.pool === pool && known.key === pin.key)) pins.push({ pool, key: pin.key, version: current });
    }
  }
  return pins;
}

interface WantedPin {
  readonly pool: string;
  readonly key: string;
  /** Undefined: whatever is current. */
  readonly version?: number | null | undefined;
  readonly write?: boolean;
}

/** Holds every pinned entry until the transaction ends, pool after pool in one order for all. Answers what has moved, if anything. */
export async function movedPin(tx: Tx, pools: Pools, proposal: HeldProposal): Promise<Failure | undefined> {
  for (const [pool, pins] of byPool(proposal.pins)) {
    const versions = await pools.currentVersionsIn(tx, proposal.caller, pool, keysOf(pins), true);
    for (const pin of pins) {
      const current = versions.get(pin.key) ?? null;
      if (current !== pin.version) return moved(pin, current);
    }
  }
  return undefined;
}

/** Every attached write, as the proposer's; whatever is refused takes all of the transaction with it. */
export async function writeAttached(tx: Tx, pools: Pools, proposal: HeldProposal, causedBy: number): Promise<void> {
  for (const [pool, writes] of byPool(proposal.writes)) {
    await pools.writeIn(
      tx,
      proposal.caller,
      pool,
      writes.map((write) => asPoolWrite(write, proposal.pins)),
      { external: proposal.external, causedBy },
    );
  }
}

function asPoolWrite({ pool, key, value, remove, ttl, note }: ProposedWrite, pins: readonly Pin[]): PoolWrite {
  const pin = pins.find((each) => each.pool === pool && each.key === key);
  return {
    key,
    ifVersion: pin?.version ?? null,
    ...(remove ? { remove } : { value }),
    ...(ttl === undefined ? {} : { ttlMs: ttl }),
    ...(note === undefined ? {} : { note }),
  };
}

function byPool<T extends { readonly pool: string; readonly key: string }>(items: readonly T[]): [string, T[]][] {
  const sorted = items.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return [...Map.groupBy(sorted, (item) => item.pool)].sort(([a], [b]) => (a < b ? -1 : 1));
}

function keysOf(items: readonly { readonly key: string }[]): string[] {
  return [...new Set(items.map((item) => item.key))];
}

function moved({ pool, key, version }: Pin, current: number | null): Failure {
  const say = (each: number | null): string => (each === null ? "absent" : `at version ${each}`);
  return new Failure("pool.conflict", `${pool}/${key} was pinned ${say(version)} and is ${say(current)}`, {
    details: { pool, key, pinned: version, version: current },
    hint: "Read the entry again and propose anew.",
  });
}

import { type PoolDefinition, poolDefinition } from "../../src/contract/pools.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";

export function agent(name: string, run: string | null = null, step: string | null = null): Caller {
  return { kind: "agent", name, roles: [], run, step, call: run && `${run}-call` };
}

export function guest(name: string): Caller {
  return { ...agent(name), kind: "guest" };
}

export const READER: Caller = { ...OPERATOR, kind: "reader", name: "reader" };

/** Pools on a store, with these definitions made. */
export async function poolsOn(store: Store, definitions: Readonly<Record<string, unknown>>): Promise<Pools> {
  const pools = new Pools(store);
  for (const [name, definition] of Object.entries(definitions)) await makePool(store, pools, name, definition);
  return pools;
}

export async function makePool(store: Store, pools: Pools, name: string, definition: unknown): Promise<void> {
  const parsed: PoolDefinition = poolDefinition.parse(definition);
  await store.transact("make pool", (tx) => pools.createIn(tx, "operator", name, parsed), "locked");
}

export const OPEN = { readers: ["*"], writers: ["*"] };

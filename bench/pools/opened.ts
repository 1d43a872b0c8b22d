import type { Caller } from "../../src/kernel/caller.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import { openStore, type Store } from "../../src/store/store.ts";

export const POOL = "bench";
/** What is measured is the way, not the limits on it. */
const QUOTA = { max_bytes: 1e12, max_entries: 1e9, agent_max_bytes: 1e12, agent_max_entries: 1e9 };

export interface Opened {
  readonly store: Store;
  readonly pools: Pools;
}

export async function openPools(location: string): Promise<Opened> {
  const store = await openStore(location);
  const pools = new Pools(store);
  await pools.reconcile({ [POOL]: { readers: ["*"], writers: ["*"], quota: QUOTA } });
  return { store, pools };
}

export function author(index: number, run: string | null = null): Caller {
  return { kind: "agent", name: `agent-${index}`, roles: [], run, step: run && "step", call: null };
}

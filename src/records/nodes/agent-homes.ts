import type { Reads } from "../../store/engine.ts";
import { type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { IS_GONE, type ThisNode } from "./nodes.ts";

/** Where the files of an agent are. */
export interface AgentHomeRow {
  readonly agent: string;
  readonly node: string;
  readonly home: string;
}

export interface SeenNode extends Pick<ThisNode, "name" | "home" | "labels"> {
  readonly isAlive: boolean;
  readonly startedAt: number;
}

type Here = Pick<ThisNode, "name" | "home">;

interface SeenRow {
  readonly agent: string | null;
  readonly node: string;
  readonly home: string;
  readonly labels: string | null;
  readonly alive: number;
  readonly started_at: number;
}

/** All homes of agents and all nodes, in one statement: every node asks again and again. */
export async function readPlaces(reads: Reads): Promise<{ readonly homes: AgentHomeRow[]; readonly nodes: SeenNode[] }> {
  const rows = await reads.all<SeenRow>`select agent, node, home, null as labels, 0 as alive, 0 as started_at from agent_homes
    union all select null, name, home, labels, case when ${IS_GONE} then 0 else 1 end, started_at from nodes`;
  const homes: AgentHomeRow[] = [];
  const nodes: SeenNode[] = [];
  for (const { agent, node, home, labels, alive, started_at: startedAt } of rows)
    if (agent !== null) homes.push({ agent, node, home });
    else nodes.push({ name: node, home, labels: JSON.parse(labels ?? "[]") as string[], isAlive: alive === 1, startedAt });
  return { homes, nodes };
}

/** For the pulse: whether others are there than those that were seen alive. */
export function nodesChanged(alive: readonly Pick<SeenNode, "startedAt">[]): SqlFragment {
  const last = Math.max(0, ...alive.map(({ startedAt }) => startedAt));
  return sql`(select count(*) from nodes where not (${IS_GONE})) <> ${alive.length}
    or (select coalesce(max(started_at), 0) from nodes where not (${IS_GONE})) <> ${last}`;
}

/** The files of these agents are here, unless another node was quicker. Answers where they are: durable before any of them takes a turn. */
export async function settleHomes(store: Store, agents: readonly string[], { name, home }: Here): Promise<AgentHomeRow[]> {
  return store.transact(
    "settle homes",
    async (tx) => {
      const settled: AgentHomeRow[] = [];
      // In one order, so that two nodes which settle the same ones do not wait for each other.
      for (const agent of [...agents].sort()) {
        await tx.run`insert into agent_homes (agent, node, home, at) values (${agent}, ${name}, ${home}, now_ms()) on conflict (agent) do nothing`;
        const row = await tx.get<AgentHomeRow>`select agent, node, home from agent_homes where agent = ${agent}`;
        if (row) settled.push(row);
      }
      return settled;
    },
    "locked",
  );
}

/** The operator has named another node than the one that had the files. Answers false where they have moved elsewhere meanwhile. */
export async function moveHome(store: Store, from: AgentHomeRow, { name, home }: Here): Promise<boolean> {
  const moved = await store.transact(
    "move home",
    (tx) =>
      tx.run`update agent_homes set node = ${name}, home = ${home}, at = now_ms() where agent = ${from.agent} and home = ${from.home}`,
    "locked",
  );
  return moved > 0;
}

/**
 * What this node is known by may have changed: under another name the home is the same, and its files are. Under the same name with another
 * home it is the operator's word that this machine stands for the one before; answers whose files may not be here.
 */
export async function renameHomes(store: Store, { name, home }: Here): Promise<string[]> {
  return store.transact(
    "rename homes",
    async (tx) => {
      await tx.run`update agent_homes set node = ${name} where home = ${home} and node <> ${name}`;
      const replaced = await tx.all<{
        agent: string;
      }>`update agent_homes set home = ${home}, at = now_ms() where node = ${name} and home <> ${home}
        and not exists (select 1 from nodes where nodes.home = agent_homes.home and not (${IS_GONE})) returning agent`;
      return replaced.map(({ agent }) => agent).sort();
    },
    "locked",
  );
}

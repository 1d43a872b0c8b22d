import type { Caller } from "../../kernel/caller.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";

/** Agents as far as it matters here who may look at whose tasks. */
export interface SeeingAgents {
  get(id: string): { readonly sees: readonly string[] } | undefined;
}

/** As whom somebody looks at tasks: `all` sees every one, a name those that it opened or did, and everything below them. */
export type Eyes = "all" | readonly string[];

export function eyesOf(caller: Caller, agents: SeeingAgents): Eyes {
  if (caller.kind === "operator" || caller.kind === "reader") return "all";
  if (caller.kind === "guest") return [caller.name];
  if (caller.kind !== "agent") return [];
  const sees = agents.get(caller.name)?.sees ?? [];
  return sees.includes("*") ? "all" : [...new Set([caller.name, ...sees])];
}

interface Placed {
  readonly agent: string | null;
  readonly from: string;
  readonly parent: string | null;
}

/** Who may see it from the beginning: who is above it does not change any more. */
export async function viewersOfNew(reads: Reads, { agent, from, parent }: Placed): Promise<string[]> {
  const above = parent === null ? undefined : await reads.get<{ viewers: string }>`select viewers from tasks where id = ${parent}`;
  const inherited = above ? (JSON.parse(above.viewers) as string[]) : [];
  return [...new Set([...inherited, from, ...(agent === null ? [] : [agent])])];
}

export async function addViewersIn(tx: Tx, id: string, viewers: readonly string[]): Promise<void> {
  const [first, second, ...others] = viewers;
  // Nearly always there are two: whoever opened it, and whoever does it.
  if (second === undefined) await tx.run`insert into task_viewers (viewer, task_id) values (${first as string}, ${id})`;
  else await tx.run`insert into task_viewers (viewer, task_id) values (${first as string}, ${id}), (${second}, ${id})`;
  for (const viewer of others) await tx.run`insert into task_viewers (viewer, task_id) values (${viewer}, ${id})`;
}

export async function removeViewersIn(tx: Tx, id: string, viewers: readonly string[]): Promise<void> {
  await tx.run`delete from task_viewers where task_id = ${id} and viewer in ${list(viewers)}`;
}

import { peerIn } from "../../contract/a2a.ts";
import type { TaskKind } from "../../contract/tasks.ts";
import { Failure } from "../../kernel/failure.ts";
import { refuses, standstillIn } from "../../records/agents/standstill.ts";
import { countOpenBelow } from "../../records/tasks/task-rows.ts";
import { Budgets } from "../../records/usage/budgets.ts";
import type { Tx } from "../../store/engine.ts";
import type { Above } from "./task-above.ts";
import type { TaskParts } from "./task-parts.ts";

interface TaskToOpen {
  readonly kind: TaskKind;
  readonly agent: string;
}

/** Why these tasks may not be opened; null: they may. The turn above them is held, so that the answer is still true when they are. */
export async function refusalOf(parts: TaskParts, tx: Tx, above: Above, tasks: readonly TaskToOpen[]): Promise<Failure | null> {
  if (above.run?.isOver) return new Failure("run.over", `the turn ${above.run.id} has ended: it opens nothing any more`);
  for (const task of tasks) {
    const refused = standingRefusal(parts, task) ?? cycleRefusal(above, task) ?? depthRefusal(above);
    if (refused) return refused;
  }
  return (await childrenRefusal(parts, tx, above, tasks.length)) ?? budgetRefusal(parts, tx, above);
}

/** Whoever pauses is asked all the same: its turn waits. */
function standingRefusal({ agents: { current } }: TaskParts, { kind, agent }: TaskToOpen): Failure | null {
  if (kind === "remote") {
    const isKnown = Object.hasOwn(current.settings.config.peers, peerIn(agent) ?? "");
    return isKnown ? null : new Failure("agent.unknown", `there is no peer "${agent}"`);
  }
  const standstill = standstillIn(current, agent);
  if (standstill && refuses(standstill)) return standstill.failure;
  return current.agents.has(agent) ? null : new Failure("agent.unknown", `there is no agent "${agent}"`);
}

function cycleRefusal({ chain }: Above, { kind, agent }: TaskToOpen): Failure | null {
  if (kind === "child" || !chain.includes(agent)) return null;
  const way = [...chain, agent].join(" → ");
  return new Failure("task.cycle", `${agent} stands above this task already: ${way}`, { details: { chain } });
}

function depthRefusal({ isParent, depth, maxDepth }: Above): Failure | null {
  if (!isParent || depth + 1 <= maxDepth) return null;
  return new Failure("task.too_deep", `a task of yours would be at depth ${depth + 1}, and ${maxDepth} is the deepest along its chain`, {
    details: { depth: depth + 1, maxDepth },
  });
}

async function childrenRefusal({ agents }: TaskParts, tx: Tx, { run }: Above, more: number): Promise<Failure | null> {
  if (!run) return null;
  const most = agents.current.agents.get(run.agent)?.subagents.maxChildren ?? 0;
  const open = await countOpenBelow(tx, run.id);
  if (open + more <= most) return null;
  const asked = more === 1 ? "one more is" : `${more} more are`;
  return new Failure("task.too_many", `${open} of at most ${most} tasks of this turn are open; ${asked} too many`, {
    details: { open, asked: more, maxChildren: most },
  });
}

async function budgetRefusal({ store, agents }: TaskParts, tx: Tx, { run }: Above): Promise<Failure | null> {
  if (!run) return null;
  const budgetOf = (agent: string) => agents.current.agents.get(agent)?.budget ?? {};
  return new Budgets(store).spentInTree(tx, run.id, run.agent, budgetOf);
}

import type { Caller } from "../../kernel/caller.ts";
import { isNamed } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import { WaitingRoom } from "../../records/sessions/waiting.ts";
import type { Tx } from "../../store/engine.ts";
import { openTaskIn, type TaskToOpen } from "./open-task.ts";
import { aboveElsewhere } from "./task-above.ts";
import type { TaskParts } from "./task-parts.ts";

export interface AskedFor {
  readonly agent: string;
  readonly goal: string;
}

/**
 * A task that somebody asks for by his token, outside any turn: an operator of every agent, an agent of itself and of those it may delegate to, a
 * guest of those that name him under `guests`. Refused by an exception, so that nothing is recorded for it. Answers its id.
 */
export async function askForTaskIn(parts: TaskParts, tx: Tx, caller: Caller, asked: AskedFor): Promise<string> {
  const { current } = parts.agents;
  const rights = rightsToAsk(parts, caller, asked.agent);
  const labels = await labelsOfAskerIn(parts, tx, caller);
  const task: TaskToOpen = { kind: "api", from: caller.name, parent: null, ...asked, ...rights, labels };
  if (current.agents.has(asked.agent)) await new WaitingRoom().enterIn(tx, asked.agent, current.settings.config.limits);
  const opened = await openTaskIn(parts, tx, task);
  if ("refused" in opened) throw opened.refused;
  return opened.id;
}

/** A guest's words are somebody else's; so may be those of an agent that has read such words a while ago, outside any turn. */
export async function labelsOfAskerIn({ pools }: TaskParts, tx: Tx, caller: Caller): Promise<Label[]> {
  const isExternal = caller.kind === "guest" || (caller.kind === "agent" && (await pools.hasReadExternalIn(tx, caller)));
  return isExternal ? ["external"] : [];
}

/** What whoever asks may have done at most, and what is known to stand above it; refused by an exception. */
export function rightsToAsk({ agents: { current } }: TaskParts, caller: Caller, to: string): Pick<TaskToOpen, "granted" | "above"> {
  if (caller.kind === "operator") return {};
  if (caller.kind === "guest") {
    // Whether there is such an agent is not told to whom it does not name.
    if (!isNamed(caller, current.agents.get(to)?.guests ?? []))
      throw new Failure("request.forbidden", `${caller.name} may give no tasks to "${to}"`, {
        hint: `The operator allows it with \`agents.${to}.guests\`.`,
      });
    return {};
  }
  if (caller.kind !== "agent") throw new Failure("request.forbidden", "this token may give no tasks");
  if (caller.name === to) return {};
  const { policy, agents } = current;
  const granted = policy.grantOfDelegate(policy.grantOf(caller.name), to);
  if (!policy.delegatesOf(caller.name).includes(to))
    throw new Failure("task.not_delegate", `${caller.name} may not delegate to "${to}"`, {
      details: { agents: policy.delegatesOf(caller.name) },
    });
  return { granted, above: aboveElsewhere(0, agents.get(caller.name)?.subagents.maxDepth ?? 0, [caller.name]) };
}

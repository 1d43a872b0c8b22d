import { z } from "zod";
import { delegatedInput } from "../../../acts/tasks/delegated-words.ts";
import { openTaskIn, type PlacedTask } from "../../../acts/tasks/open-task.ts";
import { peerIn } from "../../../contract/a2a.ts";
import { identifier, text } from "../../../contract/text.ts";
import { ANY_ARGUMENTS, verdictOf } from "../../../deciders/policy/may-call.ts";
import type { Policy } from "../../../deciders/policy/policy.ts";
import { Failure } from "../../../kernel/failure.ts";
import { readTask, type StoredTask } from "../../../records/tasks/task-rows.ts";
import { inWords } from "../in-words.ts";
import { defineTool, type Tool } from "../tool.ts";
import { withoutSubagents } from "./child-grant.ts";
import type { DelegationParts } from "./delegation-parts.ts";
import { endOf, gather } from "./gather.ts";

export function agentDelegateTool({ tasks }: DelegationParts): Tool {
  return defineTool({
    name: "agent_delegate",
    description:
      "Give work to another agent by its name (agent_list shows whom you may ask) and wait for its answer, or go on and get mail when it is done (background).",
    parameters: z.strictObject({
      agent: text(100).describe("Its name"),
      goal: text(100_000).describe("What is to be done; it knows nothing of your conversation"),
      background: z.boolean().default(false).describe("Do not wait: its end comes as mail"),
      conversation: identifier
        .optional()
        .describe("A name of yours: what you ask it later under the same name, it hears knowing what was said before"),
      allow_subagents: z.boolean().default(true).describe("false: it may not delegate further"),
      max_depth: z.int().min(0).max(10).optional().describe("How deep it may delegate at most, counted from the person who began"),
      idempotency_key: text(255).optional().describe("The same key again is the same task, and not a second one"),
    }),
    effect: "keyed",
    egress: (_, args) => peerIn((args as { agent: string }).agent) !== null,
    runIn: async (tx, args, { agent, run, grant, work, cause, labels }) => {
      const { policy } = tasks.agents.current;
      if (policy.rightsOn(agent.id, args.agent) === null) throw notDelegate(policy, agent.id, args.agent);
      const rights = policy.grantOfDelegate(grant, args.agent);
      const granted = args.allow_subagents ? rights : withoutSubagents(rights);
      const maySpawn = ({ depth, maxDepth }: PlacedTask): boolean =>
        depth < maxDepth && verdictOf({ grant: granted, current: policy, tool: "delegate_task", args: ANY_ARGUMENTS }) !== "deny";
      const opened = await openTaskIn(tasks, tx, {
        kind: peerIn(args.agent) === null ? "delegate" : "remote",
        agent: args.agent,
        from: agent.id,
        parent: { run: run.id, ...(args.background ? {} : { waiter: work }) },
        goal: args.goal,
        input: (placed) => delegatedInput(placed.id, agent.id, args.goal, maySpawn(placed)),
        granted,
        labels: [...labels],
        spec: {
          ...(args.background ? { background: true } : {}),
          ...(args.conversation === undefined ? {} : { conversation: args.conversation }),
          ...(args.allow_subagents ? {} : { allowSubagents: false }),
        },
        ...(args.max_depth === undefined ? {} : { maxDepth: args.max_depth }),
        ...(args.idempotency_key === undefined ? {} : { idempotencyKey: args.idempotency_key }),
        causedBy: cause,
      });
      if ("refused" in opened) return { output: inWords(opened.refused), failed: true };
      if (!args.background) return { waitsFor: [opened.id] };
      const task = (await readTask(tx, opened.id)) as StoredTask;
      if (task.endedAt !== null) return (await gather(tx, [opened.id], false)) ?? { output: endOf(task) };
      return {
        output: { task: opened.id, agent: args.agent, status: "queued", note: "its end comes as mail; task_check tells how far it is" },
      };
    },
    collect: (ids) => gather(tasks.store.read, ids, false),
  });
}

function notDelegate(policy: Policy, from: string, to: string): Failure {
  const delegates = policy.delegatesOf(from);
  const whom = delegates.length === 0 ? "nobody" : delegates.join(", ");
  return new Failure("task.not_delegate", `you may not delegate to "${to}"; you may to ${whom}`);
}

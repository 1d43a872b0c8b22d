import { z } from "zod";
import { schemaProblem } from "../../../acts/tasks/answer-schema.ts";
import { childInput } from "../../../acts/tasks/delegated-words.ts";
import { openTasksIn, type TaskToOpen } from "../../../acts/tasks/open-task.ts";
import { openWorkflowIn } from "../../../acts/tasks/open-workflow.ts";
import { modelName } from "../../../contract/config.ts";
import { text } from "../../../contract/text.ts";
import { toolRules } from "../../../contract/tools.ts";
import { Failure } from "../../../kernel/failure.ts";
import { inWords } from "../in-words.ts";
import { type CallContext, defineTool, type Tool } from "../tool.ts";
import { grantOfChild } from "./child-grant.ts";
import { delegatedWorkflow } from "./delegated-workflow.ts";
import type { DelegationParts } from "./delegation-parts.ts";
import { gather } from "./gather.ts";

const MOST = 100;

const one = {
  goal: text(100_000).optional().describe("What is to be done, and what the answer should hold. The child knows nothing else."),
  context: text(200_000).optional().describe("What it should know beside the goal"),
  tools: toolRules
    .optional()
    .describe(
      "Only these tools of yours: a list of names, a profile, or {profile, allow, deny}. It gets none for memory, mail, messages or clarify unless you name them.",
    ),
  model: modelName.optional().describe("Instead of the model for children"),
  output_schema: z.record(z.string(), z.unknown()).optional().describe("JSON Schema: the answer is JSON that fits it"),
};
const child = z.strictObject(one);
type Child = z.output<typeof child>;

/** A step of a workflow; what else it may hold is checked where it is started. */
const step = z.looseObject({
  id: z.string(),
  goal: z.string(),
  needs: z.array(z.string()).optional(),
  reads: z.array(z.string()).optional(),
  writes: z.array(z.string()).optional(),
});

export function delegateTaskTool(parts: DelegationParts): Tool {
  const { tasks } = parts;
  return defineTool({
    name: "delegate_task",
    description:
      "Let one-off children of yours do work in a fresh context, and wait for what they answer: one (goal), several side by side (tasks), or steps that build on each other and share results by keys (workflow).",
    parameters: z.strictObject({
      ...one,
      tasks: z.array(child).min(1).max(MOST).optional().describe("Several at once, instead of goal"),
      workflow: z
        .array(step)
        .min(1)
        .max(1_000)
        .optional()
        .describe(
          "Steps, instead of goal: {id, goal, needs: [ids], reads: [keys], writes: [keys], agent?, when?, foreach?, retry?, timeout?}. A step's answer is kept under the keys it writes.",
        ),
      shared_context: z.boolean().optional().describe("Of a workflow: false keeps its steps from sharing anything"),
    }),
    effect: "keyed",
    prepare: async ({ workflow, shared_context }) => {
      if (workflow) await tasks.workflows.compile(delegatedWorkflow(workflow, shared_context));
      return [];
    },
    runIn: async (tx, args, context) => {
      if ([args.goal, args.tasks, args.workflow].filter((each) => each !== undefined).length !== 1)
        throw new Failure("tool.bad_arguments", "delegate_task takes one of goal, tasks and workflow");
      if (args.workflow) {
        const { agent, run, work, grant, labels, cause } = context;
        const opened = await openWorkflowIn(tasks, tx, {
          definition: delegatedWorkflow(args.workflow, args.shared_context),
          agent: agent.id,
          parent: { run: run.id, waiter: work },
          granted: grantOfChild(grant, args.tools),
          labels: [...labels],
          causedBy: cause,
        });
        return "refused" in opened ? { output: inWords(opened.refused), failed: true } : { waitsFor: [opened.id] };
      }
      const wanted = (args.tasks ?? [{}]).map((each) => childOf(parts, { ...args, ...each }, context));
      const opened = await openTasksIn(tasks, tx, wanted);
      return "refused" in opened ? { output: inWords(opened.refused), failed: true } : { waitsFor: opened.ids };
    },
    collect: (ids, args) => gather(tasks.store.read, ids, Array.isArray((args as { tasks?: unknown } | null)?.tasks)),
  });
}

function childOf(
  { models }: DelegationParts,
  { goal, context: known, tools, model, output_schema }: Child,
  context: CallContext,
): TaskToOpen {
  const { agent, run, task, grant, work, cause, labels } = context;
  if (goal === undefined) throw new Failure("tool.bad_arguments", "each of the tasks needs a goal");
  // The call's own, what the config says for children, the parent's; none: that of the agent, with those that stand in for it.
  const chosen = model ?? agent.subagents.model ?? run.model ?? task?.spec.model;
  // Not found here, it would be found by a child that can do nothing about it.
  if (chosen !== undefined) models.resolve(chosen);
  const problem = output_schema ? schemaProblem(output_schema) : null;
  if (problem !== null) throw new Failure("tool.bad_arguments", `output_schema: ${problem}`);
  return {
    kind: "child",
    agent: agent.id,
    from: agent.id,
    parent: { run: run.id, waiter: work },
    goal,
    input: childInput(goal, known),
    granted: grantOfChild(grant, tools),
    labels: [...labels],
    spec: {
      place: run.address,
      ...(chosen === undefined ? {} : { model: chosen }),
      ...(output_schema ? { outputSchema: output_schema } : {}),
    },
    causedBy: cause,
  };
}

import type { WorkflowToStart } from "../../acts/workflows/start-workflow.ts";
import type { NewWorkflowRun, Workflow, WorkflowFile } from "../../contract/workflows.ts";
import { checkWorkflow, problemInWords, soundWorkflow } from "../../deciders/planning/check-workflow.ts";
import { hasConditions } from "../../deciders/planning/compile.ts";
import type { Conditions } from "../../deciders/planning/condition.ts";
import { loadConditions } from "../../deciders/planning/load-conditions.ts";
import { renderTemplate } from "../../deciders/planning/templates.ts";
import type { AroundWorkflow } from "../../deciders/planning/workflow-problems.ts";
import { ANY_ARGUMENTS, mayCall } from "../../deciders/policy/may-call.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure, isFailure } from "../../kernel/failure.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import { namedWorkflow, type ReadWorkflow, readWorkflow, workflowNames, workflowOfValue } from "../../settings/load-workflow.ts";

type Agents = Pick<AgentRegistry, "current">;
type Start = Pick<WorkflowToStart, "definition" | "granted" | "callerAgent" | "above">;
export type WorkflowStarter = (caller: Caller, workflow: NewWorkflowRun["workflow"]) => Promise<Start>;

/** Workflows as files of the home, and how any workflow is looked at before it runs. */
export class WorkflowFiles {
  readonly #home: string;
  readonly #agents: Agents;
  #conditions: Promise<Conditions> | undefined;

  constructor(home: string, agents: Agents) {
    this.#home = home;
    this.#agents = agents;
  }

  async list(): Promise<WorkflowFile[]> {
    return Promise.all(
      workflowNames(this.#home).map(async ({ name, file }) => {
        const read = await readWorkflow(file);
        const { workflow, problems } = checkWorkflow(read, await this.around(read));
        const first = workflow === null ? problems[0] : undefined;
        return {
          name,
          file,
          description: read.workflow?.description ?? null,
          steps: read.workflow?.steps.length ?? 0,
          problem: first ? problemInWords(first) : null,
        };
      }),
    );
  }

  named(name: string): Promise<ReadWorkflow> {
    return readWorkflow(namedWorkflow(this.#home, name));
  }

  async around({ workflow }: ReadWorkflow): Promise<AroundWorkflow> {
    const { agents } = this.#agents.current;
    if (workflow === null || !hasConditions(workflow)) return { agents: agents.keys(), conditions: null };
    this.#conditions ??= loadConditions();
    return { agents: agents.keys(), conditions: await this.#conditions };
  }
}

/**
 * What may be started by whom. An operator starts anything, with the rights of each step's agent. An agent delegates when it starts one: it
 * must be allowed to, and no step has more rights than it (`startWorkflowIn` sees to whom it may name), nor delegates deeper, or back to it.
 * Names of files are the operator's.
 */
export function workflowStarter(agents: Agents, files: WorkflowFiles): WorkflowStarter {
  return async (caller, given) => {
    const isAgent = caller.kind === "agent";
    if (isAgent) refuseUnlessMayDelegate(agents, caller.name);
    if (isAgent && typeof given === "string")
      throw new Failure("request.forbidden", "an agent sends the workflow itself; names of files are for the operator");
    const read = typeof given === "string" ? await files.named(given) : workflowOfValue(given);
    const definition = soundWorkflow(read, await files.around(read));
    if (!isAgent) return { definition, granted: null, callerAgent: null };
    return {
      definition,
      granted: agents.current.policy.grantOf(caller.name),
      callerAgent: caller.name,
      above: belowAgent(agents, caller.name),
    };
  };
}

/** `ask` is a no here: outside a turn there is no call that a person could look at. */
function refuseUnlessMayDelegate(agents: Agents, agent: string): void {
  const { policy } = agents.current;
  const call = { grant: policy.grantOf(agent), current: policy, tool: "delegate_task", args: ANY_ARGUMENTS };
  const { verdict, because } = mayCall(call);
  if (verdict !== "allow") throw new Failure("request.forbidden", `${agent} may not delegate, and a workflow is nothing else: ${because}`);
}

/** As if a turn of the agent had started it. */
function belowAgent(agents: Agents, agent: string): NonNullable<Start["above"]> {
  const maxDepth = agents.current.agents.get(agent)?.subagents.maxDepth ?? 0;
  if (maxDepth < 1)
    throw new Failure("task.too_deep", `a workflow of ${agent} would be at depth 1, and ${maxDepth} is the deepest along its chain`);
  return { depth: 1, maxDepth, chain: [agent] };
}

/** Before anything runs, and not after half of it: a goal names an input that was not given. A step that may be skipped may do without. */
export function refuseMissingInput({ steps }: Workflow, input: Readonly<Record<string, unknown>>): void {
  for (const { id, goal, when, foreach } of steps) {
    if (when !== undefined || foreach !== undefined) continue;
    try {
      renderTemplate(goal, { input });
    } catch (error) {
      if (!isFailure(error, "step.bad_template")) throw error;
      throw new Failure("request.malformed", `input: the step ${id} needs more of it: ${error.message}`, {
        hint: "Give every input that the goals name: `--input name=value`, or `input` in the request.",
        cause: error,
      });
    }
  }
}

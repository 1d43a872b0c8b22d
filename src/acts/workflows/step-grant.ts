import type { WorkflowStep } from "../../contract/workflows.ts";
import { type Grant, narrow } from "../../deciders/policy/grant.ts";
import { layerOf } from "../../deciders/policy/layer.ts";
import type { Revision } from "../../records/agents/revision.ts";
import type { KnownWorkflow } from "../../records/workflows/known-workflows.ts";

/** The agent that does a step: its own, else whoever calls, else the default one; undefined: there is none. */
export function agentOfStep(
  { callerAgent }: Pick<KnownWorkflow, "callerAgent">,
  step: WorkflowStep,
  { agents }: Revision,
): string | undefined {
  return step.agent ?? callerAgent ?? agents.values().find(({ isDefault }) => isDefault)?.id;
}

/** Agent ∩ step ∩ whoever started the workflow. */
export function grantOfStep({ granted, pool }: KnownWorkflow, step: WorkflowStep, agent: string, { policy }: Revision): Grant {
  const most = granted === null ? policy.grantOf(agent) : granted.agent === agent ? granted : policy.grantOfDelegate(granted, agent);
  const layers = [
    ...(step.tools === undefined ? [] : [layerOf(`step ${step.id}`, step.tools)]),
    // Whoever shares nothing uses no shared memory at all.
    ...(pool === null ? [WITHOUT_CONTEXT] : []),
  ];
  return narrow(most, ...layers);
}

const WITHOUT_CONTEXT = layerOf("a workflow with shared_context: false", {
  profile: "full",
  also_allow: [],
  allow: null,
  deny: ["group:context"],
  ask: [],
});

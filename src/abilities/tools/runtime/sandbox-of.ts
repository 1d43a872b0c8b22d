import type { Grant } from "../../../deciders/policy/grant.ts";
import { ANY_ARGUMENTS, mayCall } from "../../../deciders/policy/may-call.ts";
import type { Network, SandboxPlan } from "../../../records/workspaces/sandbox/sandbox.ts";
import type { Sandboxes } from "../../../records/workspaces/sandbox/sandboxes.ts";
import type { CallContext } from "../tool.ts";

/** What of a call decides about the network; a grant that was narrowed for it, where there is one. */
type Asking = Pick<CallContext, "agent" | "revision"> & { readonly grant?: Grant };

/**
 * What the config says; else the public web where the agent may fetch pages without asking anybody, and nothing where it may not: a program
 * would be a way around.
 */
export function networkOf({ agent, revision, grant }: Asking): Network {
  const { kind, network } = agent.sandbox;
  if (kind === "none") return "full";
  if (network !== undefined) return network;
  const { verdict } = mayCall({ grant: grant ?? agent.grant, current: revision.policy, tool: "web_fetch", args: ANY_ARGUMENTS });
  return verdict === "allow" ? "guarded" : "none";
}

/** Acts on the world outside the sandbox: there is none, or nothing stands between it and this machine's network. */
export function actsOutside(asking: Asking): boolean {
  return networkOf(asking) === "full";
}

export function planOf(sandboxes: Sandboxes, context: CallContext): Promise<SandboxPlan> {
  const { agent, run, revision } = context;
  return sandboxes.plan(agent, run.address, { configFile: revision.settings.configFile }, networkOf(context));
}

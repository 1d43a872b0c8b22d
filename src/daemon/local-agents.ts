import type { AgentView } from "../contract/agents.ts";
import type { AGENT_STATES } from "../contract/config.ts";
import type { Agent } from "../records/agents/agent.ts";
import { editsToAdd, editsToSetState, type NewAgent, refuseUnknown } from "../records/agents/agent-edits.ts";
import { makeAgentHome } from "../records/agents/agent-home.ts";
import { viewAll } from "../records/agents/agent-view.ts";
import { Personalities } from "../records/agents/personality.ts";
import { revisionOf } from "../records/agents/revision.ts";
import { type EditedConfig, editConfig } from "../settings/edit-config.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { loadSettings, type Settings } from "../settings/load-settings.ts";

/** Agents in the config file, whether or not a daemon runs. A running one notices the change. */

export interface AddedAgent extends EditedConfig {
  readonly id: string;
  readonly folder: string;
}

export async function addAgentAt(where: Whereabouts, agent: NewAgent): Promise<AddedAgent> {
  const edited = await editConfig(where, process.env, (now) => editsToAdd(now, agent));
  return { id: agent.id, ...edited, folder: makeAgentHome(homeOf(where, process.env), agent.id) };
}

export function setAgentStateAt(where: Whereabouts, id: string, state: (typeof AGENT_STATES)[number]): Promise<EditedConfig> {
  return editConfig(where, process.env, (now) => editsToSetState(now, id, state));
}

export function listAgentsAt(where: Whereabouts): AgentView[] {
  return viewAll(revisionOf(loadSettings(where, process.env), 0), new Map());
}

/** One value that holds for an agent, and who says so. */
export interface ShownValue {
  readonly key: string;
  readonly value: unknown;
  readonly from: "own" | "everybody" | "default" | "SOUL.md";
  readonly line: number | null;
}

export interface ShownAgent {
  readonly id: string;
  readonly state: Agent["state"];
  readonly because: string | null;
  readonly default: boolean;
  readonly file: string | null;
  readonly folder: string;
  readonly values: readonly ShownValue[];
  readonly bindings: readonly { readonly line: number | null; readonly platform: string; readonly chat: string | null }[];
}

export async function showAgentAt(where: Whereabouts, id: string): Promise<ShownAgent> {
  const settings = loadSettings(where, process.env);
  const { agents } = revisionOf(settings, 0);
  refuseUnknown(id, [...agents.keys()]);
  const agent = agents.get(id) as Agent;
  const personality = await new Personalities(settings.home).of(agent);
  return {
    id,
    state: agent.state,
    because: agent.because,
    default: agent.isDefault,
    file: settings.configFile,
    folder: `${settings.home}/agents/${id}`,
    values: valuesOf(settings, agent, personality),
    bindings: settings.config.bindings.flatMap((binding, index) =>
      binding.agent === id
        ? [{ line: settings.originOf(["bindings", index])?.line ?? null, platform: binding.platform, chat: binding.chat }]
        : [],
    ),
  };
}

function valuesOf(settings: Settings, agent: Agent, personality: string | null): ShownValue[] {
  const { id, subagents } = agent;
  const said = (path: readonly string[]): number | null => (settings.isWritten(path) ? (settings.originOf(path)?.line ?? null) : null);
  const shown = (key: string, value: unknown, everybodys: readonly string[] | null = [key]): ShownValue => {
    const own = said(["agents", id, ...key.split(".")]);
    if (own !== null) return { key, value, from: "own", line: own };
    const inherited = everybodys === null ? null : said(everybodys);
    return { key, value, from: inherited === null ? "default" : "everybody", line: inherited };
  };
  const told = shown("personality", personality);
  return [
    shown("model", agent.model),
    told.value !== agent.personality ? { key: "personality", value: personality, from: "SOUL.md", line: null } : told,
    shown(
      "tools",
      agent.grant.layers.map(({ rules }) => rules),
    ),
    shown("roles", agent.roles, null),
    shown("budget", agent.budget),
    shown("sandbox", agent.sandbox),
    shown("dm_scope", agent.dmScope),
    shown("group_scope", agent.groupScope),
    shown("memory_scope", agent.memoryScope),
    shown("workspace_scope", agent.workspaceScope),
    shown("sees", agent.sees, null),
    shown("shared_paths", agent.sharedPaths, null),
    shown("env", Object.keys(agent.env), null),
    shown("mcp", Object.keys(agent.mcp), null),
    shown("subagents.model", subagents.model, ["subagent", "model"]),
    shown("subagents.max_depth", subagents.maxDepth, null),
    shown("subagents.max_children", subagents.maxChildren, null),
    shown("subagents.agents", subagents.agents, null),
  ];
}

import { existsSync, readFileSync } from "node:fs";
import { modelsOf } from "../abilities/models/configured-models.ts";
import type { AgentView } from "../contract/agents.ts";
import type { AGENT_STATES } from "../contract/config.ts";
import { sha256 } from "../kernel/canonical-json.ts";
import type { Agent } from "../records/agents/agent.ts";
import { editsToAdd, editsToSetState, type NewAgent, refuseUnknown } from "../records/agents/agent-edits.ts";
import { agentHome, makeAgentHome } from "../records/agents/agent-home.ts";
import { viewAll } from "../records/agents/agent-view.ts";
import { Personalities } from "../records/agents/personality.ts";
import { revisionOf } from "../records/agents/revision.ts";
import { backupOf, configFileOf, type EditedConfig } from "../settings/edit-config.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { loadSettings, type Settings } from "../settings/load-settings.ts";
import { summaryOf } from "./agent-summary.ts";
import { editNewest, isShared } from "./edit-newest.ts";

/** Agents in the config file, whether or not a daemon runs. A running one notices the change. */

export interface AddedAgent extends EditedConfig {
  readonly id: string;
  readonly folder: string;
  /** There was one of this id before: what that one has left is the new one's. */
  readonly returned: boolean;
}

export async function addAgentAt(where: Whereabouts, agent: NewAgent): Promise<AddedAgent> {
  const edited = await editNewest(where, process.env, (now) => editsToAdd(now, agent));
  const home = homeOf(where, process.env);
  const returned = existsSync(agentHome(home, agent.id));
  return { id: agent.id, ...edited, folder: makeAgentHome(home, agent.id), returned };
}

export function configFileAt(where: Whereabouts): string {
  return configFileOf(where, process.env);
}

/** Of the config as it is now; empty where it cannot be read. */
export function configHashAt(where: Whereabouts): string {
  return hashOf(configFileOf(where, process.env));
}

function hashOf(file: string): string {
  try {
    return sha256(readFileSync(file, "utf8"));
  } catch {
    return "";
  }
}

/** `revision`: with which it is in force already. */
export interface StateEdit extends EditedConfig, Pick<Agent, "state" | "because"> {
  readonly revision: number | null;
}

/** The daemon of this home, where it reads the same file. */
export interface DaemonOfFile {
  /** Answers the revision with which it is in force. */
  setState(): Promise<number>;
}

/**
 * With what it is then: one whose section is broken is neither paused nor active, whatever its section says. Where nodes share a config and a
 * daemon runs, it makes the change: it knows what others change at the same moment.
 */
export async function setAgentStateAt(
  where: Whereabouts,
  id: string,
  state: (typeof AGENT_STATES)[number],
  daemon: DaemonOfFile | null,
): Promise<StateEdit> {
  const isDaemons = daemon !== null && isShared(loadSettings(where, process.env));
  const edited = isDaemons
    ? await editedBy(daemon, configFileOf(where, process.env))
    : { ...(await editNewest(where, process.env, (now) => editsToSetState(now, id, state))), revision: null };
  const now = revisionOf(loadSettings(where, process.env), 0).agents.get(id);
  return { ...edited, state: now?.state ?? state, because: now?.because ?? null };
}

async function editedBy(daemon: DaemonOfFile, file: string): Promise<EditedConfig & Pick<StateEdit, "revision">> {
  const before = hashOf(file);
  const revision = await daemon.setState();
  const hash = hashOf(file);
  const backup = backupOf(file, before);
  return { file, hash, revision, changed: hash !== before, backup: hash !== before && existsSync(backup) ? backup : null };
}

export function listAgentsAt(where: Whereabouts): AgentView[] {
  const settings = loadSettings(where, process.env);
  const models = modelsOf(settings);
  return viewAll(revisionOf(settings, 0), new Map(), (agent) => summaryOf(agent, models).problem);
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
  refuseUnknown(id, settings);
  const agent = agents.get(id) as Agent;
  const personality = await new Personalities(settings.home).of(agent);
  return {
    id,
    state: agent.state,
    because: agent.because,
    default: agent.isDefault,
    file: settings.configFile,
    folder: agentHome(settings.home, id),
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
    shown("nodes", agent.nodes),
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

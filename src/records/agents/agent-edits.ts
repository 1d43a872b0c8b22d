import { type AGENT_STATES, agentId, defaultAgentOf } from "../../contract/config.ts";
import { Failure } from "../../kernel/failure.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { inWords } from "../../settings/config-problem.ts";
import type { Settings } from "../../settings/load-settings.ts";
import type { Edit } from "../../settings/yaml-edit.ts";

/** An agent to be, in the words of the config. */
export interface NewAgent {
  readonly id: string;
  readonly keys: Readonly<Record<string, unknown>>;
  readonly isDefault: boolean;
  /** Each without the agent, which is this one. */
  readonly bindings: readonly Readonly<Record<string, unknown>>[];
}

/**
 * What to write so that there is one agent more and every message that is bound to none goes where it went before, unless the new
 * one is to be the default.
 */
export function editsToAdd({ config, quarantined, isWritten }: Settings, agent: NewAgent): Edit[] {
  const { id, isDefault } = agent;
  refuseBadId(id);
  const ids = Object.keys(config.agents);
  const written = isWritten(["agents"]);
  const same = [...ids, ...quarantined.keys()].find((known) => known.toLowerCase() === id);
  // Without the key there is one implicit `main`, which is made real by adding it.
  if (same !== undefined && written) throw new Failure("agent.exists", `there is an agent "${same}" already`);
  const section = { ...(isDefault ? { default: true } : {}), ...agent.keys };
  const before = defaultAgentOf(config.agents);
  const bindings = agent.bindings.map((binding): Edit => ({ kind: "append", path: ["bindings"], value: { agent: id, ...binding } }));
  if (!written) {
    const others = id === "main" ? {} : { main: isDefault ? {} : { default: true } };
    return [{ kind: "set", path: ["agents"], value: { ...others, [id]: section } }, ...bindings];
  }
  return [...defaultEdits(config.agents, before, isDefault), { kind: "set", path: ["agents", id], value: section }, ...bindings];
}

function defaultEdits(agents: Settings["config"]["agents"], before: string | undefined, isDefault: boolean): Edit[] {
  if (before === undefined) return [];
  const hasFlag = agents[before]?.default === true;
  if (isDefault) return hasFlag ? [{ kind: "set", path: ["agents", before, "default"], value: false }] : [];
  // It is the default because it is alone, which ends now; or because of its name, which the new one cannot take.
  return hasFlag || before === "main" ? [] : [{ kind: "set", path: ["agents", before, "default"], value: true }];
}

/** An agent that says nothing of its state is active: then there is nothing to write. */
export function editsToSetState(settings: Settings, id: string, state: (typeof AGENT_STATES)[number]): Edit[] {
  refuseUnknown(id, settings);
  const { isWritten } = settings;
  const path = ["agents", id, "state"];
  return state === "active" && !isWritten(path) ? [] : [{ kind: "set", path, value: state }];
}

/** One whose id itself is the mistake is listed, and is told why it is nobody. */
export function refuseUnknown(id: string, { config, quarantined }: Settings): void {
  if (Object.hasOwn(config.agents, id)) return;
  const [problem] = quarantined.get(id) ?? [];
  if (problem) throw new Failure("agent.quarantined", `agent ${id} is quarantined: ${inWords(problem)}`, { hint: problem.fix });
  throw new Failure("agent.unknown", `there is no agent "${id}"${didYouMean(id, Object.keys(config.agents))}`);
}

function refuseBadId(id: string): void {
  const checked = agentId.safeParse(id);
  const message = checked.success ? undefined : checked.error.issues[0]?.message;
  if (message !== undefined) throw new Failure("usage.wrong", `"${id}" cannot be an agent's id: ${message}`);
}

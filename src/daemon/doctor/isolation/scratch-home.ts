import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { revisionOf } from "../../../records/agents/revision.ts";
import type { SandboxOwner } from "../../../records/workspaces/sandbox/sandboxes.ts";
import type { Whereabouts } from "../../../settings/home.ts";
import { inspectSettings, loadSettings, type Settings } from "../../../settings/load-settings.ts";
import { listAt, mapAt, valueAt } from "../../../settings/value-at.ts";
import type { Canaries } from "./canaries.ts";
import { RECORDER } from "./recording-model.ts";

/** What of a config would reach outside the copy, or cost something: models, channels, servers, stores. */
const LEFT_OUT = ["providers", "channels", "store", "server", "model", "subagent", "personality"];
const LEFT_OUT_OF_AGENTS = ["model", "mcp", "state", "personality", "env", "shared_paths"];

const AUTO = { kind: "auto", network: undefined } as const;

export interface ScratchHome {
  readonly path: string;
  readonly agents: readonly string[];
  /** Agents that the config does not let run: they are in the copy with nothing of their own. */
  readonly quarantined: readonly string[];
  /** What decides about the files and programs of an agent, as in the operator's config. */
  owner(agent: string): SandboxOwner;
  /** Whom an agent may look at by the operator's own word. */
  sees(agent: string, other: string): boolean;
  remove(): void;
}

/**
 * A home with the operator's agents, rights, scopes, pools and bindings, and nothing real in it: every secret is a canary, every
 * shared folder an empty one, the model a script, the store a file of its own.
 */
export function scratchHome(where: Whereabouts, canariesOf: (agent: string) => Canaries): ScratchHome {
  const settings = loadSettings(where, process.env);
  const { source } = inspectSettings(where, process.env);
  const path = mkdtempSync(join(tmpdir(), "guildhall-isolation-"));
  const agents = Object.keys(settings.config.agents);
  const config = copyOf(source?.value ?? {}, settings, agents, canariesOf);
  writeFileSync(join(path, "guildhall.yaml"), JSON.stringify(config, null, 1), { mode: 0o600 });
  for (const agent of agents)
    for (const { path: folder } of listAt(config, ["agents", agent, "shared_paths"]) as { path: string }[])
      mkdirSync(join(path, folder), { recursive: true });
  const copied = revisionOf(loadSettings({ home: path }, process.env), 0).agents;
  return {
    path,
    agents,
    quarantined: [...settings.quarantined.keys()],
    owner: (agent) => copied.get(agent) ?? { id: agent, workspaceScope: "agent", sharedPaths: [], env: {}, sandbox: AUTO },
    sees: (agent, other) => settings.config.agents[agent]?.sees.some((name) => name === "*" || name === other) ?? false,
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

function copyOf(written: unknown, settings: Settings, agents: readonly string[], canariesOf: (agent: string) => Canaries): object {
  const everybodys = Object.entries(mapAt(written, [])).filter(([key]) => !LEFT_OUT.includes(key));
  const sections = agents.map((id) => [id, sectionOf(written, settings, id, canariesOf(id))] as const);
  const copy = { ...Object.fromEntries(everybodys), model: RECORDER, store: "sqlite", agents: Object.fromEntries(sections) };
  // Values from the environment stand in it as they are: none of them is a name any more.
  return JSON.parse(JSON.stringify(copy).replaceAll("${", "$ {")) as object;
}

function sectionOf(written: unknown, { quarantined }: Settings, id: string, canaries: Canaries): object {
  const section = mapAt(written, ["agents", id]);
  const isDefault = section.default === true ? { default: true } : {};
  const kept = quarantined.has(id)
    ? isDefault
    : Object.fromEntries(Object.entries(section).filter(([key]) => !LEFT_OUT_OF_AGENTS.includes(key)));
  const names = Object.keys(quarantined.has(id) ? {} : mapAt(written, ["agents", id, "env"]));
  const env = Object.fromEntries([...names, "GUILDHALL_CANARY"].map((name) => [name, canaries.of(`secret ${name}`)]));
  return { ...kept, personality: markOf(canaries), env, shared_paths: quarantined.has(id) ? [] : sharedIn(written, id) };
}

/** In its own instructions, so that its prompts can be told from those of others. */
export function markOf(canaries: Canaries): string {
  return `You are the owner of ${canaries.of("personality")}.`;
}

/** The same names and modes, each an empty folder; two that share a folder share one here too. */
function sharedIn(written: unknown, id: string): object[] {
  return listAt(written, ["agents", id, "shared_paths"]).map((_, index) => {
    const at = ["agents", id, "shared_paths", index];
    const path = String(valueAt(written, [...at, "path"]));
    const name = String(valueAt(written, [...at, "name"]) ?? path.split("/").findLast((part) => part !== "" && part !== "."));
    return {
      path: `./shared-copies/${encodeURIComponent(path).replaceAll("%", "_").slice(-200)}`,
      mode: valueAt(written, [...at, "mode"]) ?? "ro",
      name,
    };
  });
}

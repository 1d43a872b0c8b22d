import { join } from "node:path";
import { BUILT_IN_TOOLS, TOOL_ALIASES } from "../../contract/tools.ts";
import { sharedFolder } from "../../settings/shared-paths.ts";
import { grantOf, type PolicySource } from "./agent-layers.ts";
import { CompiledLayer, ProfileMatchers } from "./compiled-layer.ts";
import { type Grant, holdsOwnRules, NO_RIGHTS, narrow } from "./grant.ts";
import type { Layer } from "./layer.ts";
import { serverOf } from "./tool-name.ts";

/** Why an agent may do nothing at the moment. */
export interface Standstill {
  readonly because: string;
  readonly fix: string;
  readonly line: number | null;
}

/** The rules of one revision of the config. A grant is always asked together with the policy of the moment, so that a change bites at the next call. */
export class Policy {
  readonly source: PolicySource;
  readonly #tools: ReadonlySet<string>;
  readonly #profiles = new ProfileMatchers();
  /** Layers are plain data and travel with runs: what was compiled of them stays here, for as long as they live. */
  readonly #compiled = new WeakMap<Layer, CompiledLayer>();
  readonly #grants = new Map<string, Grant>();

  /** `tools`: what plug-ins and the surrounding program offer beside the built-in ones. Tools of servers are never everybody's. */
  constructor(source: PolicySource, tools: Iterable<string> = []) {
    this.source = source;
    this.#tools = new Set([...BUILT_IN_TOOLS, ...tools]);
  }

  /** What the config gives this agent now. */
  grantOf(agent: string): Grant {
    const known = this.#grants.get(agent);
    if (known) return known;
    const fresh = grantOf(this.source, agent);
    // Names come from outside: only those that exist may take up room.
    if (Object.hasOwn(this.source.config.agents, agent)) this.#grants.set(agent, fresh);
    return fresh;
  }

  compiled(layer: Layer): CompiledLayer {
    const known = this.#compiled.get(layer);
    if (known) return known;
    const fresh = new CompiledLayer(layer, this.#profiles);
    this.#compiled.set(layer, fresh);
    return fresh;
  }

  /** Null: it may act. */
  standstillOf(agent: string): Standstill | null {
    const { config, quarantined } = this.source;
    const [broken] = quarantined.get(agent) ?? [];
    if (broken) {
      const place = `${this.file}:${broken.line}`;
      const because = `agent ${agent} is quarantined: ${broken.message} (${place})`;
      return { because, fix: `${broken.fix.replace(/\.$/, "") || "correct its section"} (${place})`, line: broken.line };
    }
    if (quarantined.has(agent)) return { because: `agent ${agent} is quarantined`, fix: "correct its section", line: null };
    const state = Object.hasOwn(config.agents, agent) ? config.agents[agent]?.state : undefined;
    if (state === "active") return null;
    if (state === undefined) return { because: `there is no agent "${agent}" any more`, fix: `add agents.${agent}`, line: null };
    const line = this.lineOf("agents", agent, "state");
    return { because: `agent ${agent} is ${state}${this.at(line)}`, fix: `guildhall agents resume ${agent}`, line };
  }

  /** It stands still, and goes on where it was. */
  isPaused(agent: string): boolean {
    const { config, quarantined } = this.source;
    return !quarantined.has(agent) && Object.hasOwn(config.agents, agent) && config.agents[agent]?.state === "paused";
  }

  /** How `to` acts for `from`; null: `from` may not delegate to it. An agent that stands still gives nobody rights. */
  rightsOn(from: string, to: string): "narrowed" | "own" | null {
    if (this.standstillOf(from)) return null;
    const delegates = this.source.config.agents[from]?.subagents.agents ?? [];
    // Written twice, the stricter one holds.
    const rights = delegates.filter((delegate) => delegate.id === to).map((delegate) => delegate.rights);
    return rights.length === 0 ? null : rights.includes("narrowed") ? "narrowed" : "own";
  }

  /**
   * What a named delegate may call: its own rights within its caller's. With `rights: own` the caller's layers travel along and are waived
   * only for as long as the config says so, so that taking the words back narrows what already runs, and adding them widens nothing.
   */
  grantOfDelegate(caller: Grant, to: string): Grant {
    const rights = this.rightsOn(caller.agent, to);
    if (rights === null || !holdsOwnRules(caller)) return NO_RIGHTS;
    const own = this.grantOf(to);
    // An agent that is not there has no rights to pass on, even where rules of its own, of an earlier time, come with its caller.
    if (!holdsOwnRules(own)) return own;
    const edge = { from: caller.agent, to };
    const inherited =
      rights === "own" ? caller.layers.map((layer) => ({ ...layer, waived_by: [...layer.waived_by, edge] })) : caller.layers;
    return narrow(own, ...inherited);
  }

  /** Whom it may name, whether or not it may act. */
  delegatesOf(agent: string): string[] {
    const { agents } = this.source.config;
    return Object.hasOwn(agents, agent) ? (agents[agent]?.subagents.agents.map(({ id }) => id) ?? []) : [];
  }

  /** Whether there can be such a tool for this agent. Which tools its servers really have is known only when they run. */
  hasTool(agent: string, tool: string): boolean {
    const server = serverOf(tool);
    if (server === null) return this.#tools.has(tool);
    const { agents } = this.source.config;
    return Object.hasOwn(agents, agent) && Object.hasOwn(agents[agent]?.mcp ?? {}, server);
  }

  get toolNames(): string[] {
    return [...this.#tools, ...Object.keys(TOOL_ALIASES).filter((alias) => !TOOL_ALIASES[alias]?.includes(":"))];
  }

  workspaceOf(agent: string): string {
    return join(this.source.home, "agents", agent, "workspace");
  }

  sharedFoldersOf(agent: string): string[] {
    const { agents } = this.source.config;
    const shared = Object.hasOwn(agents, agent) ? agents[agent]?.shared_paths : undefined;
    return (shared ?? []).map((path) => sharedFolder(path, this.source).path);
  }

  /** The config file as messages name it. */
  get file(): string {
    return this.source.configFile?.split(/[/\\]/).at(-1) ?? "guildhall.yaml";
  }

  lineOf(...path: (string | number)[]): number | null {
    return this.source.originOf(path)?.line ?? null;
  }

  /** ` (guildhall.yaml:31)`, or nothing. */
  at(line: number | null): string {
    return line === null ? "" : ` (${this.file}:${line})`;
  }
}

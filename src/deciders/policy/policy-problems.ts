import { BUILT_IN_TOOLS, PROFILES, type ToolRules } from "../../contract/tools.ts";
import type { ConfigProblem } from "../../settings/config-problem.ts";
import { grantOf, type PolicySource } from "./agent-layers.ts";
import { globsOverlap } from "./glob.ts";
import type { Layer } from "./layer.ts";
import { entryMatches, meaningOf } from "./matcher.ts";

/**
 * Rules that do not do what they seem to: for `config check`. `tools` are those of the surrounding program. Names that name nothing at all
 * are the settings' to refuse.
 */
export function policyProblems(source: PolicySource, tools: readonly string[] = []): ConfigProblem[] {
  const ids = Object.keys(source.config.agents).filter((id) => !source.quarantined.has(id));
  return ids.flatMap((id) => new AgentRules(source, id, tools).problems()).sort((a, b) => a.line - b.line || a.column - b.column);
}

/** What an agent can meet: names that are known, and for each of its servers a wildcard, since what it offers is known only when it runs. */
type Universe = readonly string[];

class AgentRules {
  readonly #source: PolicySource;
  readonly #id: string;
  readonly #universe: Universe;
  readonly #layers: readonly Layer[];

  constructor(source: PolicySource, id: string, tools: readonly string[]) {
    const servers = Object.keys(source.config.agents[id]?.mcp ?? {});
    this.#source = source;
    this.#id = id;
    this.#universe = [...BUILT_IN_TOOLS, ...tools, ...servers.map((server) => `mcp__${server}__*`)];
    this.#layers = grantOf(source, id).layers;
  }

  problems(): ConfigProblem[] {
    const own = this.#source.config.agents[this.#id]?.tools;
    // Rules that are inherited are everybody's: what they do not do for one agent they may do for another.
    return [...this.#empty(), ...(own ? [...this.#idle(own, "deny"), ...this.#idle(own, "ask"), ...this.#cancelled(own)] : [])];
  }

  #empty(): ConfigProblem[] {
    if (this.#universe.some((tool) => this.#layers.every(({ rules }) => isIn(rules, tool) && !isDenied(rules, tool)))) return [];
    const path = this.#source.config.agents[this.#id]?.tools ? ["agents", this.#id, "tools"] : ["tools"];
    return [
      this.#warning(
        "policy.no_tools",
        path,
        `agent ${this.#id} may call no tool at all`,
        "Allow one, or leave it so if it shall only talk.",
      ),
    ];
  }

  /** Entries of `deny` and `ask` that change nothing. */
  #idle(rules: ToolRules, key: "deny" | "ask"): ConfigProblem[] {
    return rules[key].flatMap((entry, index) => {
      const path = ["agents", this.#id, "tools", key, index];
      const named = this.#universe.filter((tool) => names(entry, tool));
      if (named.length === 0) return [];
      const inSet = named.filter((tool) => isIn(rules, tool));
      if (inSet.length === 0) {
        const effect = key === "deny" ? "is not allowed anyway" : "is not allowed, and `ask` does not allow it";
        const fix = key === "deny" ? "Remove it, or keep it as a precaution." : `Add it to also_allow or allow, or remove it.`;
        return [this.#warning(`policy.idle_${key}`, path, `${entry} ${effect}`, fix)];
      }
      if (key === "deny") return [];
      const denying = this.#layers.find((layer) => inSet.every((tool) => isDenied(layer.rules, tool)));
      if (!denying) return [];
      const message = `${entry} is denied by ${denying.origin?.path ?? "tools"}.deny: nobody will be asked`;
      return [this.#warning("policy.ask_denied", path, message, "Remove it here or there.")];
    });
  }

  /** What is added here and always taken away by everybody's `deny`. */
  #cancelled(rules: ToolRules): ConfigProblem[] {
    const denied = this.#source.config.tools?.deny ?? [];
    return rules.also_allow.flatMap((entry, index) => {
      const named = this.#universe.filter((tool) => names(entry, tool));
      const by = denied.findIndex((other) => named.length > 0 && named.every((tool) => covers(other, tool)));
      if (by < 0) return [];
      const line = this.#source.originOf(["tools", "deny", by])?.line;
      const message = `${entry} stays denied: a global deny always holds, and tools.deny has ${denied[by]}${line === undefined ? "" : ` (line ${line})`}`;
      return [
        this.#warning("policy.cancelled_allow", ["agents", this.#id, "tools", "also_allow", index], message, "Remove it here or there."),
      ];
    });
  }

  #warning(code: string, path: (string | number)[], message: string, fix: string): ConfigProblem {
    const { line, column } = this.#source.originOf(path) ?? { line: 1, column: 1 };
    return { severity: "warning", code, file: this.#source.configFile ?? "", line, column, path: path.join("."), message, fix };
  }
}

/** Whether the entry names the tool, or something of a server's tools. */
function names(entry: string, tool: string): boolean {
  if (!tool.includes("*")) return entryMatches(entry, tool);
  const meaning = meaningOf(entry);
  return "glob" in meaning ? globsOverlap(meaning.glob, tool) : meaning.names.some((name) => globsOverlap(name, tool));
}

/** Whether the entry names the tool, or all of a server's tools: only then is nothing of them left. */
function covers(entry: string, tool: string): boolean {
  if (!tool.includes("*")) return entryMatches(entry, tool);
  const meaning = meaningOf(entry);
  return "glob" in meaning && entryMatches(meaning.glob, tool);
}

function isIn({ profile, also_allow, allow }: ToolRules, tool: string): boolean {
  const isAdded = [...PROFILES[profile], ...also_allow].some((entry) => names(entry, tool));
  return isAdded && (allow === null || allow.some((entry) => names(entry, tool)));
}

function isDenied({ deny }: ToolRules, tool: string): boolean {
  return deny.some((entry) => covers(entry, tool));
}

import { BUILT_IN_TOOLS, TOOL_ALIASES, TOOL_GROUPS } from "../contract/tools.ts";
import { didYouMean, nearest } from "../kernel/nearest.ts";
import { type ConfigPath, errorAt, type Finding, warningAt } from "./config-problem.ts";
import { listAt, mapAt, valueAt } from "./value-at.ts";

const LISTS = ["also_allow", "allow", "deny", "ask"];
const MCP = /^mcp__([a-z0-9_-]+?)__/;

/** Names in tool lists that name nothing. `more` are the tools of the program around us. */
export function toolFindings(value: unknown, more: readonly string[]): Finding[] {
  const ids = Object.keys(mapAt(value, ["agents"]));
  const serversOf = (id: string): string[] => Object.keys(mapAt(value, ["agents", id, "mcp"]));
  return [
    ...rulesFindings(value, ["tools"], ids.flatMap(serversOf), more),
    ...ids.flatMap((id) => rulesFindings(value, ["agents", id, "tools"], serversOf(id), more)),
  ];
}

function rulesFindings(value: unknown, path: ConfigPath, servers: readonly string[], more: readonly string[]): Finding[] {
  const lists = [path, ...LISTS.map((name) => [...path, name])];
  return lists.flatMap((list) =>
    listAt(value, list).flatMap((_, index) => {
      const at = [...list, index];
      const name = valueAt(value, at);
      return typeof name === "string" ? nameFindings(name, at, servers, more) : [];
    }),
  );
}

function nameFindings(name: string, path: ConfigPath, servers: readonly string[], more: readonly string[]): Finding[] {
  const known = [...BUILT_IN_TOOLS, ...more];
  if (name.startsWith("group:")) {
    const groups = Object.keys(TOOL_GROUPS).map((group) => `group:${group}`);
    return groups.includes(name) ? [] : [unknown("group", name, path, groups)];
  }
  if (name.startsWith("mcp__")) return serverFindings(name, path, servers);
  if (name.includes("*")) {
    const pattern = new RegExp(`^${name.replace(/[^a-z0-9_*]/g, "\\$&").replace(/\*+/g, ".*")}$`);
    if ([...known, "mcp__"].some((tool) => pattern.test(tool))) return [];
    return [warningAt(path, "config.matches_nothing", `no tool matches "${name}"`, "Correct or remove it.")];
  }
  if (known.includes(name) || Object.hasOwn(TOOL_ALIASES, name)) return [];
  // What is no name at all is the schema's to refuse.
  if (!/^[a-z0-9_-]+$/.test(name)) return [];
  return [unknown("tool", name, path, [...known, ...Object.keys(TOOL_ALIASES)])];
}

function serverFindings(name: string, path: ConfigPath, servers: readonly string[]): Finding[] {
  const server = MCP.exec(name)?.[1];
  if (server === undefined) {
    if (name.includes("*")) return [];
    return [errorAt(path, "config.unknown_tool", `"${name}" is not a tool of a server`, "Write mcp__<server>__<tool>.")];
  }
  if (server.includes("*") || servers.includes(server)) return [];
  const fix = `Add the server under mcp, or name one of the agent's servers${servers.length > 0 ? `: ${servers.join(", ")}` : ""}.`;
  return [warningAt(path, "config.unknown_server", `the agent has no MCP server "${server}"${didYouMean(server, servers)}`, fix)];
}

function unknown(kind: "tool" | "group", name: string, path: ConfigPath, candidates: readonly string[]): Finding {
  const meant = nearest(name, candidates);
  const fix = meant ? `Write ${meant}.` : `Remove it, or write one of: ${candidates.join(", ")}.`;
  return errorAt(path, `config.unknown_${kind}`, `there is no ${kind} "${name}"${didYouMean(name, candidates)}`, fix);
}

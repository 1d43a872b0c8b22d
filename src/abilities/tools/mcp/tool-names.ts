import { BUILT_IN_TOOLS, TOOL_ALIASES } from "../../../contract/tools.ts";
import { shown, toolNameProblem } from "../../../deciders/policy/tool-name.ts";
import { sha256 } from "../../../kernel/canonical-json.ts";
import { Failure } from "../../../kernel/failure.ts";

/** Providers take no longer names. */
const MAX_LENGTH = 64;
const OWN = /^[a-z0-9_-]+$/;
const HASH_LENGTH = 8;

/**
 * `mcp__<server>__<tool>`. A name that rules can write stays as it is. Any other is written in small letters and gets a hash of what it
 * really is, so that `getUser`, `GetUser` and `get_user` are three tools, whatever else the server has.
 */
export function nameOf(server: string, tool: string): string {
  const prefix = `mcp__${server}__`;
  if (OWN.test(tool) && prefix.length + tool.length <= MAX_LENGTH) return prefix + tool;
  const room = MAX_LENGTH - prefix.length - HASH_LENGTH - 1;
  return `${prefix}${plainly(tool).slice(0, room)}-${sha256(tool).slice(0, HASH_LENGTH)}`;
}

/** The canonical names of a server's tools, by its own; or a refusal of them all, which says why. */
export function namesOf(server: string, tools: readonly string[]): Map<string, string> {
  const taken = new Map<string, string>();
  for (const tool of tools) {
    const meant = plainly(tool);
    if (BUILT_IN_TOOLS.includes(meant) || Object.hasOwn(TOOL_ALIASES, meant))
      throw refused(server, `its tool ${shown(tool)} bears the name of the built-in ${meant}`);
    const name = nameOf(server, tool);
    const problem = toolNameProblem(name);
    if (problem !== null) throw refused(server, problem);
    const other = taken.get(name);
    if (other !== undefined) throw refused(server, `its tools ${shown(other)} and ${shown(tool)} would both be called ${name}`);
    taken.set(name, tool);
  }
  return new Map([...taken].map(([name, tool]) => [tool, name]));
}

function refused(server: string, why: string): Failure {
  return new Failure("tool.unavailable", `the tools of the MCP server ${server} are not loaded: ${why}`, {
    hint: "Use a version of the server whose tools have other names.",
  });
}

/** `getUser` → `get_user`. */
function plainly(tool: string): string {
  return (
    tool
      .slice(0, 200)
      .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
      .toLowerCase()
      .replaceAll(/[^a-z0-9_-]+/g, "_")
      .replaceAll(/^_+|_+$/g, "") || "tool"
  );
}

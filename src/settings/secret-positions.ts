import type { ConfigPath } from "./config-problem.ts";

/** Where the config holds what nobody but its user may see. A test compares the list with the schema. */
export const SECRET_POSITIONS: readonly string[] = [
  "agents.*.env.*",
  "agents.*.mcp.*.env.*",
  "agents.*.mcp.*.headers.*",
  "providers.*.api_key",
  "channels.*.token",
  "channels.*.accounts.*.token",
];
const PATTERNS = SECRET_POSITIONS.map((position) => position.split("."));

export function isSecretPosition(path: ConfigPath): boolean {
  return PATTERNS.some((pattern) => pattern.length === path.length && pattern.every((part, index) => part === "*" || part === path[index]));
}

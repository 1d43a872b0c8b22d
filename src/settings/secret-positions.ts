import type { ConfigPath } from "./config-problem.ts";

/** Where the config holds what nobody but its user may see. A test compares the list with the schema. */
export const SECRET_POSITIONS: readonly string[] = [
  "agents.*.env.*",
  "agents.*.mcp.*.env.*",
  "agents.*.mcp.*.headers.*",
  "providers.*.api_key",
  "web.search.brave",
  "web.search.tavily",
  "peers.*.token",
  ...["channels.*", "channels.*.accounts.*"].flatMap((account) =>
    ["token", "app_token", "signing_secret", "app_secret", "verify_token", "secret"].map((key) => `${account}.${key}`),
  ),
];
const PATTERNS = SECRET_POSITIONS.map((position) => position.split("."));

export function isSecretPosition(path: ConfigPath): boolean {
  return PATTERNS.some((pattern) => pattern.length === path.length && pattern.every((part, index) => part === "*" || part === path[index]));
}

/** Also what is written where secrets have a map to stand in (`env: abc`), and inside what should have been one. */
export function isNearSecret(path: ConfigPath): boolean {
  return PATTERNS.some(
    (pattern) =>
      path.length >= pattern.length - 1 && pattern.slice(0, path.length).every((part, index) => part === "*" || part === path[index]),
  );
}

import { join } from "node:path";
import type { AgentConfig } from "../../../contract/config.ts";
import type { Secret } from "../../../contract/secret.ts";
import { canonicalJson, sha256 } from "../../../kernel/canonical-json.ts";
import { agentHome } from "../../../records/agents/agent-home.ts";

export type ServerConfig = AgentConfig["mcp"][string];

interface Common {
  readonly server: string;
  /** Of this program, for servers that want to know. */
  readonly version: string;
}

/** Where a server is, or how it is started. */
export type ServerPlace =
  | (Common & {
      readonly kind: "child";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd: string;
      heard(line: string): void;
    })
  | (Common & { readonly kind: "http"; readonly url: string; readonly headers: Readonly<Record<string, Secret>> });

export interface PlaceParts {
  readonly home: string;
  /** What every program needs to run at all: where programs are, the language. Never what this process was given for itself. */
  readonly environment: Readonly<Record<string, string>>;
  readonly version: string;
  heard(line: string): void;
}

/**
 * A program of the operator, outside the sandbox, for one agent: it has the variables that the config gives it and no others, starts in
 * the agent's workspace, and has the agent's folder as its home, so that two agents' servers share nothing by accident.
 */
export function serverPlace(agent: string, server: string, config: ServerConfig, parts: PlaceParts): ServerPlace {
  const { version } = parts;
  if ("url" in config) return { kind: "http", server, version, url: config.url, headers: config.headers };
  const folder = agentHome(parts.home, agent);
  const own = Object.fromEntries(Object.entries(config.env).map(([name, secret]) => [name, secret.reveal()]));
  const env = { ...parts.environment, HOME: folder, ...own };
  return {
    kind: "child",
    server,
    version,
    command: config.command,
    args: config.args,
    env,
    cwd: join(folder, "workspace"),
    heard: parts.heard,
  };
}

/** The same for the same config, secrets included; tells nothing of them. */
export function configKey(config: ServerConfig): string {
  const revealed = (secrets: Readonly<Record<string, Secret>>): Record<string, string> =>
    Object.fromEntries(Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()]));
  const { trusted } = config;
  return sha256(
    canonicalJson(
      "url" in config
        ? { url: config.url, headers: revealed(config.headers), trusted }
        : { command: config.command, args: config.args, env: revealed(config.env), trusted },
    ),
  );
}

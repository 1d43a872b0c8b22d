import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Binding } from "../../src/contract/bindings.ts";
import type { Address } from "../../src/deciders/routing/address.ts";

/** OpenClaw's resolver of routes, by the entry that it gives to plug-ins. It is large, so that it has a package of its own. */

const FOLDER = join(import.meta.dirname, "openclaw");
const MANIFEST = join(FOLDER, "node_modules/openclaw/package.json");

export function hasOpenClaw(): boolean {
  return existsSync(MANIFEST);
}

export function openClawVersion(): string {
  return JSON.parse(readFileSync(MANIFEST, "utf8")).version;
}

export function installOpenClaw(progress: (line: string) => void): void {
  if (hasOpenClaw()) return;
  progress("installing OpenClaw (npm ci in bench/peers/openclaw: 600 MB, some minutes)");
  execFileSync("npm", ["ci", "--ignore-scripts", "--omit=optional"], { cwd: FOLDER, stdio: ["ignore", "ignore", "inherit"] });
}

interface Input {
  readonly channel: string;
  readonly accountId: string;
  readonly peer: { readonly kind: "direct" | "group"; readonly id: string };
  readonly parentPeer: { readonly kind: "group"; readonly id: string } | null;
  readonly guildId: string | null;
  readonly memberRoleIds: readonly string[];
}
type Resolve = (input: Input & { readonly cfg: unknown }) => { readonly agentId: string; readonly sessionKey: string };

export async function openClaw(
  bindings: readonly Binding[],
  agents: readonly string[],
): Promise<{ prepare(address: Address): Input; resolve(input: Input): string }> {
  const entry = createRequire(join(FOLDER, "package.json")).resolve("openclaw/plugin-sdk/routing");
  const { resolveAgentRoute } = (await import(pathToFileURL(entry).href)) as { resolveAgentRoute: Resolve };
  const cfg = {
    agents: { list: agents.map((id, index) => ({ id, default: index === 0 })) },
    bindings: bindings.map(({ agent, platform, guild, chat, topic, chatType, roles }) => ({
      agentId: agent,
      match: {
        channel: platform,
        accountId: "*",
        ...(chat !== null && { peer: { kind: chatType === "dm" ? "direct" : "group", id: peerId(chat, topic) } }),
        ...(guild !== null && { guildId: guild }),
        ...(roles !== null && { roles }),
      },
    })),
  };
  return {
    prepare: ({ platform, account, guild, chat, topic, chatType, roles }) => ({
      channel: platform,
      accountId: account,
      peer: { kind: chatType === "dm" ? "direct" : "group", id: peerId(chat, topic) },
      parentPeer: topic === null ? null : { kind: "group", id: chat },
      guildId: guild,
      memberRoleIds: roles,
    }),
    resolve: (input) => resolveAgentRoute({ cfg, ...input }).agentId,
  };
}

/** Topics are part of the peer's id there, with the chat as its parent. */
function peerId(chat: string, topic: string | null): string {
  return topic === null ? chat : `${chat}:topic:${topic}`;
}

import type { Address } from "./address.ts";

type DmScope = "main" | "per-peer" | "per-channel-peer" | "per-account-channel-peer";
type GroupScope = "chat" | "per-peer";

export interface SessionScopes {
  readonly dmScope: DmScope;
  readonly groupScope: GroupScope;
  /** The name under which the operator has linked this sender's ids, or null. */
  readonly identityOf: (platform: string, peer: string) => string | null;
}

export const DEFAULT_SCOPES: SessionScopes = { dmScope: "per-channel-peer", groupScope: "chat", identityOf: () => null };

/**
 * Which conversation a message belongs to. Every part is percent-encoded, so that a ":" inside an id cannot make two
 * conversations one.
 */
export function sessionKey(agent: string, address: Address, scopes: SessionScopes = DEFAULT_SCOPES): string {
  return ["agent", agent, ...partsOf(address, scopes)].map(encodeURIComponent).join(":");
}

function partsOf(address: Address, { dmScope, groupScope, identityOf }: SessionScopes): string[] {
  const { platform, account, chat, topic, peer } = address;
  if (address.chatType !== "dm") {
    return [
      platform,
      ...(account === "default" ? [] : [account]),
      address.chatType,
      chat,
      ...(topic === null ? [] : ["topic", topic]),
      ...(groupScope === "per-peer" ? ["peer", peer] : []),
    ];
  }
  switch (dmScope) {
    case "main":
      return ["main"];
    case "per-peer":
      return ["dm", identityOf(platform, peer) ?? `${platform}:${peer}`];
    case "per-channel-peer":
      return [platform, "dm", peer];
    case "per-account-channel-peer":
      return [platform, account, "dm", peer];
  }
}

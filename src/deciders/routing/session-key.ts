import type { Config, DmScope, GroupScope } from "../../contract/config.ts";
import type { Address } from "./address.ts";

export interface SessionScopes {
  readonly dmScope: DmScope;
  readonly groupScope: GroupScope;
  /** The name under which the operator has linked this sender's ids, or null. */
  readonly identityOf: (platform: string, peer: string) => string | null;
}

/** What of the config decides about conversations. */
export type ScopesConfig = Pick<Config, "dm_scope" | "group_scope" | "identities"> & {
  readonly agents: Readonly<Record<string, Pick<Config, "dm_scope" | "group_scope">>>;
};

export const DEFAULT_SCOPES: SessionScopes = { dmScope: "per-channel-peer", groupScope: "chat", identityOf: () => null };

const PLAIN = /^[\w-]*$/;

/** Keys as the config says, by what the agent itself says first. */
export class SessionKeys {
  readonly #config: ScopesConfig;
  readonly #nameOf: ReadonlyMap<string, string>;

  constructor(config: ScopesConfig) {
    this.#config = config;
    this.#nameOf = new Map(Object.entries(config.identities).flatMap(([name, ids]) => ids.map((id) => [id, name] as const)));
  }

  keyFor(agent: string, address: Address): string {
    const config = this.#config;
    const own = config.agents[agent];
    return sessionKey(agent, address, {
      dmScope: own?.dm_scope ?? config.dm_scope ?? DEFAULT_SCOPES.dmScope,
      groupScope: own?.group_scope ?? config.group_scope ?? DEFAULT_SCOPES.groupScope,
      identityOf: (platform, peer) => this.#linkedName(platform, peer),
    });
  }

  #linkedName(platform: string, peer: string): string | null {
    // Linked ids end their platform at the first ":", so that another platform with one in its name is nobody they mean.
    return platform.includes(":") ? null : (this.#nameOf.get(`${platform}:${peer}`) ?? null);
  }
}

/**
 * Which conversation a message belongs to. Every part is percent-encoded, so that a ":" inside an id cannot make two
 * conversations one.
 */
export function sessionKey(agent: string, address: Address, scopes: SessionScopes = DEFAULT_SCOPES): string {
  return `agent:${encoded(agent)}:${address.chatType === "dm" ? directKey(address, scopes) : placeKey(address, scopes.groupScope)}`;
}

function placeKey({ platform, account, chatType, chat, topic, peer }: Address, groupScope: GroupScope): string {
  let key = encoded(platform);
  if (account !== "default") key += `:${encoded(account)}`;
  key += `:${chatType}:${encoded(chat)}`;
  if (topic !== null) key += `:topic:${encoded(topic)}`;
  if (groupScope === "per-peer") key += `:peer:${encoded(peer)}`;
  return key;
}

function directKey({ platform, account, peer }: Address, { dmScope, identityOf }: SessionScopes): string {
  switch (dmScope) {
    case "main":
      return "main";
    case "per-peer":
      return `dm:${encoded(personOf(identityOf(platform, peer), platform, peer))}`;
    case "per-channel-peer":
      return `${encoded(platform)}:dm:${encoded(peer)}`;
    case "per-account-channel-peer":
      return `${encoded(platform)}:${encoded(account)}:dm:${encoded(peer)}`;
  }
}

/** A name has no ":" of its own, an id has one after the platform: so nobody can be called like somebody else's id. */
function personOf(name: string | null, platform: string, peer: string): string {
  return name === null ? `${withoutColon(platform)}:${peer}` : withoutColon(name);
}

function withoutColon(text: string): string {
  return text.replace(/[%:]/g, encodeURIComponent);
}

/** Looking whether there is anything to encode is several times quicker than encoding, and there seldom is. */
function encoded(part: string): string {
  return PLAIN.test(part) ? part : encodeURIComponent(part);
}

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

/** Somebody as a platform knows them. */
export interface PersonId {
  readonly platform: string;
  readonly peer: string;
}

function personId(linked: string): PersonId {
  const colon = linked.indexOf(":");
  return { platform: linked.slice(0, colon), peer: linked.slice(colon + 1) };
}

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

  /** Every id of the person behind one: those that the operator has linked with it, and always itself. */
  idsOf({ platform, peer }: Pick<Address, "platform" | "peer">): readonly PersonId[] {
    const own = { platform, peer };
    const name = this.#linkedName(platform, peer);
    if (name === null) return [own];
    const linked = (this.#config.identities[name] ?? []).map(personId);
    return [own, ...linked.filter((id) => id.platform !== platform || id.peer !== peer)];
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
  return `agent:${encodedPart(agent)}:${address.chatType === "dm" ? directKey(address, scopes) : placeKey(address, scopes.groupScope)}`;
}

function placeKey({ platform, account, chatType, chat, topic, peer }: Address, groupScope: GroupScope): string {
  let key = encodedPart(platform);
  if (account !== "default") key += `:${encodedPart(account)}`;
  key += `:${chatType}:${encodedPart(chat)}`;
  if (topic !== null) key += `:topic:${encodedPart(topic)}`;
  if (groupScope === "per-peer") key += `:peer:${encodedPart(peer)}`;
  return key;
}

function directKey({ platform, account, peer }: Address, { dmScope, identityOf }: SessionScopes): string {
  switch (dmScope) {
    case "main":
      return "main";
    case "per-peer":
      return `dm:${encodedPart(personOf(identityOf(platform, peer), platform, peer))}`;
    case "per-channel-peer":
      return `${encodedPart(platform)}:dm:${encodedPart(peer)}`;
    case "per-account-channel-peer":
      return `${encodedPart(platform)}:${encodedPart(account)}:dm:${encodedPart(peer)}`;
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
export function encodedPart(part: string): string {
  return PLAIN.test(part) ? part : encodeURIComponent(part);
}

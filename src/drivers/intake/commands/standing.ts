import type { DmScope, GroupScope } from "../../../contract/config.ts";
import type { Address } from "../../../deciders/routing/address.ts";
import type { Caller } from "../../../kernel/caller.ts";

/**
 * What somebody may do with commands in a conversation. `owner`: everything; `own`: the conversation is theirs alone, and they may
 * begin it anew and stop it; `anyone`: it is shared with others, and they may look.
 */
export type Standing = "owner" | "own" | "anyone";

const ORDER: readonly Standing[] = ["anyone", "own", "owner"];
const OWN_TERMINAL = "terminal";

/** By what the channel or the operator says about the sender, never by what is written in a message. */
export function standingOf(
  poster: Caller | undefined,
  address: Address,
  owners: readonly string[],
  scopes: { readonly dmScope: DmScope; readonly groupScope: GroupScope },
): Standing {
  const { platform, peer, chatType } = address;
  // Only the operator's token makes a terminal the operator's own: a channel may call itself what it likes.
  if (poster?.kind === "operator" && platform === OWN_TERMINAL) return "owner";
  if (!platform.includes(":") && owners.includes(`${platform}:${peer}`)) return "owner";
  const alone = chatType === "dm" ? scopes.dmScope !== "main" : scopes.groupScope === "per-peer";
  return alone ? "own" : "anyone";
}

export function reaches(standing: Standing, needed: Standing): boolean {
  return ORDER.indexOf(standing) >= ORDER.indexOf(needed);
}

/** Who may, for those who may not. */
export function whoMay(needed: Standing): string {
  return needed === "owner"
    ? "Only the operator and those listed under `owners:` in the config may use it."
    : "In a conversation that is shared, only the operator and those listed under `owners:` in the config may use it.";
}

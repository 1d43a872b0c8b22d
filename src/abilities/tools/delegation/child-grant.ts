import { TOOL_GROUPS, type ToolRules } from "../../../contract/tools.ts";
import { type Grant, narrow } from "../../../deciders/policy/grant.ts";
import { layerOf } from "../../../deciders/policy/layer.ts";
import { entryMatches } from "../../../deciders/policy/matcher.ts";

/** What a child does not do unless the call that opens it names it: remember for its agent, ask people, write to others. */
const WITHHELD: readonly string[] = [...TOOL_GROUPS.memory, "clarify", "message_send", "mail_send", "mail_read", "mail_ack", "schedule"];
const SPAWNING = ["delegate_task", "agent_delegate"];

/** What a one-off child may call: its parent's rights, less what is withheld, and of these only what the call asks for. */
export function grantOfChild(parent: Grant, asked: ToolRules | undefined): Grant {
  const named = [...(asked?.allow ?? []), ...(asked?.also_allow ?? [])].filter((entry) => entry !== "*");
  const deny = WITHHELD.filter((tool) => !named.some((entry) => entryMatches(entry, tool)));
  const layers = [layerOf("what one-off children are not given", { ...EVERYTHING, deny })];
  if (asked) layers.push(layerOf("the tools that its parent gave it", asked));
  return narrow(parent, ...layers);
}

/** It does what it was asked itself. */
export function withoutSubagents(grant: Grant): Grant {
  return narrow(grant, layerOf("allow_subagents: false", { ...EVERYTHING, deny: SPAWNING }));
}

const EVERYTHING: ToolRules = { profile: "full", also_allow: [], allow: null, deny: [], ask: [] };

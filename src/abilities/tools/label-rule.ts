import type { CallContext, Tool } from "./tool.ts";

/** Why a person must be asked because of what the turn has seen; null: nobody must. */
export function labelRule(tool: Tool, context: CallContext, args: unknown): string | null {
  if (context.labels.has("external") && holds(tool.consequential, context, args))
    return `this turn has read words from outside, and ${tool.name} acts for good`;
  if (context.labels.has("secret") && holds(tool.egress, context, args))
    return `this turn has read a secret, and ${tool.name} could carry it out of the house`;
  return null;
}

function holds(rule: Tool["consequential"], context: CallContext, args: unknown): boolean {
  return typeof rule === "function" ? rule(context, args) : rule;
}

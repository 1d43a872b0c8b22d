import { type ListedTool, toolHash } from "../../../records/mcp/tool-list.ts";
import type { CallContext, Effect, Tool, ToolOutcome } from "../tool.ts";
import { argumentCheck } from "./check-arguments.ts";
import { describedSchema, describedTool } from "./described.ts";
import { nameOf } from "./tool-names.ts";

export const CALL_MS = 120_000;

/** A tool of a server as it was when it was offered. */
export interface OfferedTool {
  readonly server: string;
  /** As the server calls it. */
  readonly name: string;
  readonly hash: string;
}

export type CallServer = (tool: OfferedTool, args: unknown, context: CallContext) => Promise<ToolOutcome>;

export function mcpTool(server: string, listed: ListedTool, call: CallServer): Tool {
  const name = nameOf(server, listed.name);
  const offered = { server, name: listed.name, hash: toolHash(listed) };
  return {
    name,
    description: describedTool(server, listed),
    parameters: describedSchema(listed),
    effect: effectOf(listed),
    timeoutMs: CALL_MS,
    consequential: listed.annotations?.readOnlyHint !== true,
    egress: true,
    parse: argumentCheck(name, listed),
    run: (args, context) => call(offered, args, context),
  };
}

/** By what the server says of it. The protocol has no keys: what is called idempotent may be made again, and is the same thing then. */
function effectOf({ annotations }: ListedTool): Effect {
  if (annotations?.readOnlyHint === true) return "pure";
  return annotations?.idempotentHint === true ? "keyed" : "unsafe";
}

import type { Tool } from "../tool.ts";
import { processTool } from "./process.ts";
import { type RuntimeParts, terminalTool } from "./terminal.ts";

/** `terminal` and `process`. */
export function runtimeTools(parts: RuntimeParts): Tool[] {
  return [terminalTool(parts), processTool(parts)];
}

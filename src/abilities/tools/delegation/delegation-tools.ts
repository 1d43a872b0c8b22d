import type { Tool } from "../tool.ts";
import { agentDelegateTool } from "./agent-delegate.ts";
import { delegateTaskTool } from "./delegate-task.ts";
import type { DelegationParts } from "./delegation-parts.ts";
import { taskTools } from "./task-tools.ts";

export function delegationTools(parts: DelegationParts): Tool[] {
  return [delegateTaskTool(parts), agentDelegateTool(parts), ...taskTools(parts)];
}

import { z } from "zod";
import type { Skills } from "../../../records/agents/skills.ts";
import { defineTool, type Tool, type ToolSource } from "../tool.ts";

/** `skill_read`, for agents that have skills. */
export function skillSource(skills: Skills): ToolSource {
  const tool = skillTool(skills);
  return { toolsOf: async (agent) => ((await skills.of(agent.id)).length > 0 ? [tool] : []) };
}

function skillTool(skills: Skills): Tool {
  return defineTool({
    name: "skill_read",
    description: "Read one of the skills you were told of: instructions of your operator for a certain task.",
    parameters: z.strictObject({ name: z.string().min(1).max(64).describe("The skill's name.") }),
    effect: "pure",
    run: async ({ name }, { agent }) => ({ output: await skills.read(agent.id, name), told: { skill: name.slice(0, 64) } }),
  });
}

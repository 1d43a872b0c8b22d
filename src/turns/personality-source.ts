import type { Personalities } from "../records/agents/personality.ts";
import type { PartSource } from "./open-turn.ts";

/** What the agent is told about itself. */
export function personalitySource(personalities: Personalities): PartSource {
  return async ({ agent }) => {
    const text = await personalities.of(agent);
    return text === null ? null : { name: "personality", text };
  };
}

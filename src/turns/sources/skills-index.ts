import type { Skills } from "../../records/agents/skills.ts";
import type { PartSource } from "../open-turn.ts";

const CHARACTERS = 16_000;

/** What there is to read up; the skills themselves are read when they are needed. */
export function skillsIndex(skills: Skills): PartSource {
  return async ({ agent, mayUse }) => {
    if (!mayUse("skill_read")) return null;
    const lines = (await skills.of(agent.id)).map(({ name, description }) => `- ${name}: ${description}`);
    if (lines.length === 0) return null;
    let left = CHARACTERS;
    const told = lines.filter((line) => {
      left -= line.length + 1;
      return left >= 0;
    });
    const rest = lines.length - told.length;
    const more = rest === 0 ? [] : [`(and ${rest} more, by name with skill_read)`];
    return {
      name: "skills",
      text: [
        "Skills: instructions of your operator for certain tasks. Before such a task, read the skill with skill_read.",
        ...told,
        ...more,
      ].join("\n"),
    };
  };
}

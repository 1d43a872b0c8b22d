import { z } from "zod";
import { type Tool, tool } from "./tool.ts";

export const whoamiTool: Tool = tool({
  name: "whoami",
  description: "Your own name here, the repository whose files you claim, and which other agents are here: the names to write mail to.",
  input: z.strictObject({}),
  changes: false,
  call: async ({ guests }, { caller, workspace }) => {
    const others = (await guests.list()).filter(({ name }) => name !== caller.name);
    const repository = workspace?.repository ?? null;
    const data = { name: caller.name, kind: caller.kind, roles: [...caller.roles], repository, others };
    const company = others.map((other) => `${other.name}${other.repository === null ? "" : ` (in ${other.repository})`}`).join(", ");
    const lines = [
      `you are ${caller.name} (${caller.kind})`,
      repository === null ? "in no known repository" : `in the repository ${repository}`,
      company === "" ? "nobody else is here" : `also here: ${company}`,
    ];
    return { text: lines.join("\n"), data };
  },
});

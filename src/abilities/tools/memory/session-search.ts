import { z } from "zod";
import { text } from "../../../contract/text.ts";
import { hearingOf, sessionReach } from "../../../deciders/routing/session-reach.ts";
import type { Label } from "../../../kernel/label.ts";
import { labelsOfRuns } from "../../../records/journal/run-labels.ts";
import type { Sessions } from "../../../records/sessions/sessions.ts";
import type { Reads } from "../../../store/engine.ts";
import { defineTool, type Tool } from "../tool.ts";

const FOUND = 10;

/** What was said in earlier conversations that may be heard in this one (deciders/routing/session-reach.ts says which). */
export function sessionSearchTool(sessions: Sessions, reads: Reads): Tool {
  return defineTool({
    name: "session_search",
    description: "Find what was said in past conversations, by its words. Answers pieces of text with who said them, when and where.",
    parameters: z.strictObject({ query: text(1_000).describe("Words that were said.") }),
    effect: "pure",
    run: async ({ query }, { agent, revision, run, caller }) => {
      const { address, sessionKey } = run;
      const reach = sessionReach({
        agent: agent.id,
        sessionKey,
        address,
        memoryScope: agent.memoryScope,
        hearing: hearingOf(address, agent),
        ids: revision.sessionKeys.idsOf(address),
      });
      const { hits } = await sessions.searchFrom(caller, reach, query, FOUND);
      if (hits.length === 0) return { output: "Nothing was found." };
      const lines = hits.map(({ key, role, at, snippet }) => `[${key}, ${new Date(at).toISOString().slice(0, 16)}, ${role}] ${snippet}`);
      const carried = await labelsOfRuns(reads, [...new Set(hits.map((hit) => hit.run))]);
      // What another agent was told is others' word.
      const labels = new Set<Label>([...carried, ...(hits.some((hit) => hit.agent !== agent.id) ? (["external"] as const) : [])]);
      return { output: lines.join("\n"), labels: [...labels], told: { found: hits.length } };
    },
  });
}

import { z } from "zod";
import { Failure } from "../../../kernel/failure.ts";
import type { BackgroundView } from "../../../records/workspaces/sandbox/background.ts";
import { holdsSecret } from "../files/secret-files.ts";
import { type CallContext, defineTool, type Tool } from "../tool.ts";
import { networkOf } from "./sandbox-of.ts";
import type { RuntimeParts } from "./terminal.ts";

const parameters = z.strictObject({
  action: z.enum(["list", "output", "end"]).describe("output: the last of what it has said. end: ends it with all it has started."),
  id: z.string().min(1).max(100).optional().describe("As terminal or list answered it; for output and end."),
});

/** Of the programs that this agent has started in this workspace, on this node. */
export function processTool({ workspaces, background }: RuntimeParts): Tool {
  return defineTool({
    name: "process",
    polls: true,
    description: "See and end programs that you have started with terminal in the background.",
    parameters,
    // Ending what has ended is the same; and none of it outlives the daemon.
    effect: "keyed",
    run: async ({ action, id }, context) => {
      const { agent, run, revision } = context;
      const { own } = await workspaces.places(agent, run.address, { configFile: revision.settings.configFile }, false);
      if (action === "list") {
        const list = background.list(agent.id, own);
        return {
          output: list.length === 0 ? "No programs in the background." : list.map(inWords).join("\n"),
          told: { processes: list.length },
        };
      }
      if (id === undefined) throw new Failure("tool.bad_arguments", `process: ${action} needs an id`);
      if (action === "end") return { output: inWords(await background.end(agent.id, own, id)), told: { process: id } };
      const view = background.output(agent.id, own, id);
      const labels = labelsOf(view.output, context);
      return {
        output: `${inWords(view)}\n${view.output.trimEnd() || "(it has said nothing)"}`,
        ...(labels.length > 0 ? { labels } : {}),
        told: { process: id },
      };
    },
  });
}

function labelsOf(output: string, context: CallContext): ("secret" | "external")[] {
  return [...(holdsSecret(output) ? (["secret"] as const) : []), ...(networkOf(context) === "none" ? [] : (["external"] as const))];
}

function inWords({ id, command, startedAt, state, code, signal, ended }: BackgroundView): string {
  const how = state === "running" ? "running" : ended ? "was ended" : signal ? `ended by ${signal}` : `ended with exit code ${code}`;
  return `${id}  ${how}, started ${new Date(startedAt).toISOString()}: ${command}`;
}

import { z } from "zod";
import { canonicalJson, sha256 } from "../../../kernel/canonical-json.ts";
import type { Label } from "../../../kernel/label.ts";
import type { BackgroundPrograms } from "../../../records/workspaces/sandbox/background.ts";
import type { RunEnd, SandboxPlan } from "../../../records/workspaces/sandbox/sandbox.ts";
import type { Sandboxes } from "../../../records/workspaces/sandbox/sandboxes.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { holdsSecret, isSecretName } from "../files/secret-files.ts";
import { workspaceOf } from "../files/workspace-of.ts";
import { defineTool, type Tool, type ToolOutcome } from "../tool.ts";
import { boundFiles } from "./bound-files.ts";
import { actsOutside, networkOf, planOf } from "./sandbox-of.ts";
import { throttled } from "./throttled.ts";

const MAX_SECONDS = 600;
/** One argument of a program has at most 128 KiB. */
const MAX_COMMAND = 30_000;

export interface RuntimeParts {
  readonly workspaces: Workspaces;
  readonly sandboxes: Sandboxes;
  readonly background: BackgroundPrograms;
}

const parameters = z.strictObject({
  command: z
    .string()
    .min(1)
    .max(MAX_COMMAND)
    .refine((text) => !text.includes("\0"), "the command holds a NUL")
    .describe("For the shell."),
  timeout_s: z
    .int()
    .min(1)
    .max(MAX_SECONDS)
    .default(120)
    .describe("How long it may take, in seconds. Then it is ended with all it has started."),
  background: z
    .boolean()
    .default(false)
    .describe("Do not wait for it: answers an id for the process tool. For servers and what takes long."),
});

export function terminalTool({ workspaces, sandboxes, background }: RuntimeParts): Tool {
  return defineTool({
    name: "terminal",
    description:
      "Run a command in a shell, in your workspace. Every command begins anew: no variables, folders or programs of the one before are left, only files. Answers what it says and its exit code.",
    parameters,
    effect: "unsafe",
    // Its own time-out, which is shorter, comes first.
    timeoutMs: (MAX_SECONDS + 30) * 1_000,
    consequential: actsOutside,
    egress: (context) => networkOf(context) !== "none",
    boundTo: async ({ command }, context) => {
      const plan = await planOf(sandboxes, context);
      return {
        sandbox: plan.kind,
        network: plan.network,
        folder: plan.kind === "none" ? plan.workspace : "/workspace",
        // Few digits: enough to notice a change, too few to guess a value by.
        environment: sha256(canonicalJson(plan.env)).slice(0, 8),
        files: await boundFiles(workspaceOf(workspaces, context), command),
      };
    },
    run: async ({ command, timeout_s, background: stays }, context) => {
      const plan = await planOf(sandboxes, context);
      if (stays) {
        const { id } = await background.start(context.agent.id, plan, command);
        return {
          output: `Started as ${id}. See it with the process tool.`,
          // Nobody sees when it has fetched something, and its files can be read at once.
          ...(plan.network === "none" ? {} : { labels: ["external"] as const }),
          told: { process: id, ...toldOf(plan) },
        };
      }
      const told = throttled(context.progress);
      const end = await sandboxes.run(plan, { command, signal: context.signal, timeoutMs: timeout_s * 1_000, onOutput: told.add });
      told.end();
      context.signal.throwIfAborted();
      return outcomeOf(plan, command, timeout_s, end);
    },
  });
}

function toldOf({ kind, network }: SandboxPlan): Record<string, string> {
  return { sandbox: kind, network };
}

function outcomeOf(plan: SandboxPlan, command: string, seconds: number, end: RunEnd): ToolOutcome {
  const { code, signal, output, ended, hosts } = end;
  const last =
    ended === "timeout"
      ? `[ended after ${seconds} s: it had not ended by itself]`
      : ended === "output"
        ? "[ended: it said more than can be read]"
        : signal !== null
          ? `[ended by ${signal}]`
          : code === 0
            ? ""
            : `[exit code ${code}]`;
  const labels = labelsOf(command, output, hosts);
  return {
    output: [output.trimEnd() || (last === "" ? "(no output)" : ""), last].filter((part) => part !== "").join("\n"),
    ...(code === 0 && ended === null ? {} : { failed: true }),
    ...(labels.length > 0 ? { labels } : {}),
    told: {
      code,
      ...(signal ? { signal } : {}),
      ...(ended ? { ended } : {}),
      ...toldOf(plan),
      ...(hosts?.length ? { hosts: hosts.slice(0, 10) } : {}),
    },
  };
}

/** What came over the network is somebody else's word; where nobody counts, it may have. */
function labelsOf(command: string, output: string, hosts: RunEnd["hosts"]): Label[] {
  const named = command.split(/[\s'"`;|&<>()=:,]+/).some(isSecretName);
  return [
    ...(named || holdsSecret(output) ? (["secret"] as const) : []),
    ...(hosts === null || hosts.length > 0 ? (["external"] as const) : []),
  ];
}

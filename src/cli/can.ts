import type { CanAnswer, PolicyLine } from "../contract/policy.ts";
import { table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print } from "./terminal.ts";

/** Exit 0 for allow and ask, 1 for deny. */
export async function canCall(agent: string, tool: string, args: string | undefined, options: GlobalOptions): Promise<number> {
  const { canAt } = await import("../daemon/local-policy.ts");
  const answer = canAt(options, agent, tool, args);
  print(options.json ? JSON.stringify(answer) : inWords(answer));
  return answer.verdict === "deny" ? 1 : 0;
}

function inWords({ verdict, because, fix, trace }: CanAnswer): string {
  const lines = [`${bold(verdict)}: ${harmless(because)}`];
  if (fix !== null) lines.push(`to allow it: ${harmless(fix)}`);
  if (trace.length > 0) lines.push("", harmless(table(trace.map(row))));
  return lines.join("\n");
}

function row({ hit, rule, why, source, file, line }: PolicyLine): string[] {
  return [hit ? "●" : "·", rule, why, line === null ? source : `${source} (${file}:${line})`];
}

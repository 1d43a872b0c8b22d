import { basename } from "node:path";
import type { RouteExplanation } from "../contract/routing.ts";
import { table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print } from "./terminal.ts";

interface ExplainOptions extends GlobalOptions {
  readonly platform: string;
  readonly chat?: string;
  readonly topic?: string;
  readonly peer?: string;
  readonly guild?: string;
  readonly team?: string;
  readonly chatType?: "dm" | "group" | "channel";
  readonly account?: string;
  readonly roles?: string;
}

/** Rules that a person is shown; a program is told all. */
const SHOWN = 40;

/** Exit 1 where the message would be refused. */
export async function explainRoute(options: ExplainOptions): Promise<number> {
  const { explainRouteAt } = await import("../daemon/local-route.ts");
  const { platform, chat, topic, peer, guild, team, chatType, account, roles } = options;
  const asked = { platform, chat, topic, peer, guild, team, chat_type: chatType, account, roles };
  const { explanation, configFile } = explainRouteAt(options, asked, options.json ? undefined : SHOWN);
  print(options.json ? JSON.stringify(explanation) : inWords(explanation, configFile === null ? "" : basename(configFile)));
  return explanation.refused ? 1 : 0;
}

function inWords(explanation: RouteExplanation, file: string): string {
  const { agent, tier, because, trace, omitted, sessionKey, standstill, refused } = explanation;
  const line = trace.find(({ hit }) => hit)?.line ?? null;
  const verdict =
    agent === null
      ? [`✗ ${bold("refused")}`, because]
      : [`→ ${bold(harmless(agent))}`, `tier ${tier}`, line === null ? because : `${file}:${line}`];
  const lines = [verdict.join("   ")];
  if (trace.length > 0) lines.push(indent(harmless(table(trace.map(row))), "  "));
  if (omitted !== undefined) lines.push(`  … ${omitted} more; --json tells all`);
  if (sessionKey !== null) lines.push(`session ${harmless(sessionKey)}`);
  if (standstill !== null) lines.push(`${refused ? "refused" : "waits"}: ${harmless(standstill)}`);
  return indent(lines.join("\n"), "  ");
}

/** The agent of a rule stands in the words for it. */
function row({ binding, line, hit, why }: RouteExplanation["trace"][number]): string[] {
  return [hit ? "✓" : "·", line === null ? "" : `:${line}`, binding, hit ? "" : why];
}

function indent(text: string, by: string): string {
  return text.replace(/^(?=.)/gm, by);
}

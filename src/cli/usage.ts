import { UsageClient } from "../client/usage.ts";
import type { Usage, UsageList } from "../contract/usage.ts";
import { connectRunning } from "./connect.ts";
import { table } from "./spans.ts";
import { type GlobalOptions, harmless, print, say } from "./terminal.ts";

interface UsageOptions extends GlobalOptions {
  readonly by?: UsageList["by"];
  readonly agent?: string;
  readonly days?: number;
}

export async function showUsage({ by, agent, days, ...options }: UsageOptions): Promise<number> {
  const usage = await new UsageClient(await connectRunning(options)).read({ by, agent, days });
  if (options.json) print(JSON.stringify(usage));
  else if (usage.rows.length === 0) say(`no model was asked in the last ${usage.days} days`);
  else print(tableOf(usage));
  return 0;
}

function tableOf({ by, rows }: UsageList): string {
  const lines = rows.map((row) => [harmless(row[by] ?? ""), ...cells(row)]);
  const total = rows.length > 1 ? [["total", ...cells(sumOf(rows))]] : [];
  return table([[by, "calls", "input tokens", "of them kept", "output tokens", "USD", ""], ...lines, ...total]);
}

function cells({ calls, inputTokens, cachedInputTokens, outputTokens, costUsd, unpriced }: Usage): string[] {
  const unknown = unpriced === 0 ? "" : `and ${unpriced} calls whose price is not known`;
  return [...[calls, inputTokens, cachedInputTokens, outputTokens].map((count) => count.toLocaleString("en")), costUsd.toFixed(4), unknown];
}

function sumOf(rows: readonly Usage[]): Usage {
  const sum = (key: keyof Usage): number => rows.reduce((total, row) => total + row[key], 0);
  return {
    calls: sum("calls"),
    inputTokens: sum("inputTokens"),
    outputTokens: sum("outputTokens"),
    cachedInputTokens: sum("cachedInputTokens"),
    costUsd: sum("costUsd"),
    unpriced: sum("unpriced"),
  };
}

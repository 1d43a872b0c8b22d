import type { Blame, Entry } from "../contract/pools.ts";
import type { RunStepView } from "../contract/workflows.ts";
import { DEMO_STEPS, type DemoStep, goalOf } from "./demo-plan.ts";
import { span, table } from "./spans.ts";
import { harmless, oneLine, type Paint } from "./terminal.ts";
import { usageInWords } from "./workflow-tree.ts";

const NAME = Math.max(...DEMO_STEPS.map(({ id }) => id.length));
const SHOWN_VALUE = 36;
const LEAST_SHOWN = 8;

export function beginLine(step: DemoStep, { bold, cyan }: Paint): string {
  return `  ${cyan("▶")} ${bold(step.id.padEnd(NAME))}  ${step.agent}: ${goalOf(step)}`;
}

/** `wrote`: `key@version`, by the pool and not by what the model says about itself. */
export function endLine({ id, status, error, usage, ...step }: RunStepView, wrote: readonly string[], paint: Paint): string {
  const { bold, green, red, dim } = paint;
  const done = status === "completed";
  const what = done ? `wrote ${wrote.join(", ")}` : red(harmless(error?.message ?? status));
  const took = span((step.endedAt ?? 0) - (step.startedAt ?? step.endedAt ?? 0));
  return `  ${done ? green("✔") : red("✘")} ${bold(id.padEnd(NAME))}  ${what}  ${dim(`${took}${usage ? `, ${usageInWords(usage)}` : ""}`)}`;
}

/** Every version there is, whose it is and what it was made from. */
export function versionsTable(entries: readonly Entry[], blames: ReadonlyMap<string, Blame>, columns: number): string {
  const rows = entries.map((entry) => {
    const made = blames.get(`${entry.key}@${entry.version}`)?.derivedFrom ?? [];
    const from = made.map(({ key, version }) => `${key}@${version}`).join(", ");
    return [`  ${entry.key}@${entry.version}`, entry.author.agent, from === "" ? "nothing" : from];
  });
  const lines = table([["  version", "by", "made from"], ...rows]).split("\n");
  const width = Math.max(...lines.map((line) => line.length)) + 2;
  const shown = Math.max(LEAST_SHOWN, Math.min(SHOWN_VALUE, columns - 1 - width));
  const values = ["begins with", ...entries.map(({ value }) => String(value))];
  return lines.map((line, index) => `${line.padEnd(width)}${oneLine(values[index] ?? "", shown)}`).join("\n");
}

export function readersLine(entry: Entry, { readBy, descendants }: Blame): string {
  const readers = [...new Set(readBy.map(({ agent }) => agent))].sort().join(", ");
  const after = descendants
    .map(({ key, version }) => `${key}@${version}`)
    .sort()
    .join(", ");
  return `  ${entry.key}@${entry.version} was read by ${readers || "nobody"}${after === "" ? "" : `;\n  if it were wrong, so might be ${after}`}`;
}

import type { Blame, Entry } from "../contract/pools.ts";
import type { LiveEvent } from "../contract/wire.ts";
import { argumentsInWords } from "./chat-view.ts";
import { DEMO_STEPS, type DemoStep } from "./demo-plan.ts";
import { dollars } from "./money.ts";
import { span, table } from "./spans.ts";
import { harmless, oneLine, type Paint } from "./terminal.ts";

export interface StepEnd {
  readonly step: DemoStep;
  readonly run: string;
  readonly status: string;
  readonly ms: number;
  readonly tokens: number;
  readonly costUsd: number;
  /** What it has written, `key@version`. */
  readonly wrote: readonly string[];
  readonly error: string | null;
}

const NAME = Math.max(...DEMO_STEPS.map(({ id }) => id.length));
const SHOWN_VALUE = 36;
const LEAST_SHOWN = 8;
const SHOWN_TROUBLE = 100;

export function beginLine({ id, agent, goal }: DemoStep, { bold, cyan }: Paint): string {
  return `  ${cyan("▶")} ${bold(id.padEnd(NAME))}  ${agent}: ${goal}`;
}

/** One line for each call that is over; what is said in between is the script's, and tells nothing. */
export function callLine({ id }: DemoStep, event: LiveEvent, args: Map<number, string>, { dim, red }: Paint): string | undefined {
  if (event.kind === "call") args.set(event.place, argumentsInWords(event.args));
  if (event.kind !== "called") return undefined;
  const what = `· ${harmless(event.tool)} ${(args.get(event.place) ?? "").split(" ")[0] ?? ""}`;
  const failed = event.failed ? red(` ${oneLine(event.note, SHOWN_TROUBLE)}`) : "";
  return `  ${dim(`│ ${id.padEnd(NAME)}  ${what}  ${span(event.ms)}`)}${failed}`;
}

export function endLine({ step, status, ms, tokens, costUsd, wrote, error }: StepEnd, { bold, green, red, dim }: Paint): string {
  const done = status === "completed" && error === null;
  const what = done ? `wrote ${wrote.join(", ")}` : red(harmless(error ?? status));
  return `  ${done ? green("✔") : red("✘")} ${bold(step.id.padEnd(NAME))}  ${what}  ${dim(`${span(ms)}, ${tokens} tokens, ${dollars(costUsd)}`)}`;
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

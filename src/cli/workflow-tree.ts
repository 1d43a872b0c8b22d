import type { Usage } from "../contract/usage.ts";
import { isStepOver, isWorkflowOver, type RunStepView, type WorkflowRun } from "../contract/workflows.ts";
import { argumentsInWords } from "./chat-view.ts";
import { dollars } from "./money.ts";
import { span } from "./spans.ts";
import { harmless, oneLine, type Paint } from "./terminal.ts";
import { layOut, stepOfItem } from "./workflow-layout.ts";

const MARKS: Record<RunStepView["status"], string> = {
  waiting: "·",
  ready: "○",
  running: "▶",
  review: "?",
  completed: "✔",
  failed: "✘",
  skipped: "–",
  cancelled: "×",
};
const STYLES: Partial<Record<RunStepView["status"], keyof Paint>> = {
  waiting: "dim",
  ready: "dim",
  running: "cyan",
  review: "yellow",
  completed: "green",
  failed: "red",
  skipped: "dim",
  cancelled: "dim",
};
const WIDEST_NAME = 32;
const WIDEST_AGENT = 16;
const SHOWN = 300;

/** What a view may take up. */
export interface Frame {
  readonly columns: number;
  /** Undefined: as many lines as there are. */
  readonly rows?: number | undefined;
}

/** One line about the run, then its steps as a tree: who, how long, and what it does now or came to. */
export function treeOf(run: WorkflowRun, now: number, { columns, rows }: Frame, paint: Paint): string[] {
  const placed = layOut(run.steps);
  const names = placed.map(({ step, branch }) => `${branch}${MARKS[step.status]} ${harmless(step.id)}`);
  const width = Math.min(WIDEST_NAME, Math.max(...names.map((name) => name.length)));
  const agentWidth = Math.min(WIDEST_AGENT, Math.max(0, ...run.steps.map(({ agent }) => (agent ?? "").length)));
  const lines = placed.map(({ step, branch }, index) => {
    const style = STYLES[step.status];
    const { dim } = paint;
    const name = cut(names[index] ?? "", width);
    const mark = branch.length < name.length ? name.slice(branch.length, branch.length + 1) : "";
    const painted = `${dim(name.slice(0, branch.length))}${style ? paint[style](mark) : mark}${name.slice(branch.length + 1)}`;
    const who = cut(harmless(step.agent ?? ""), agentWidth);
    const time = timeOf(step, now).padStart(6);
    const room = columns - 2 - width - 2 - agentWidth - 2 - 6 - 2;
    const said = cut(wordsOf(run, step), Math.max(0, room));
    const told = step.status === "failed" ? paint.red(said) : step.status === "review" ? paint.yellow(said) : dim(said);
    return `  ${painted}${" ".repeat(width - name.length)}  ${who.padEnd(agentWidth)}  ${dim(time)}  ${told}`.trimEnd();
  });
  return [
    headLine(run, now, columns, paint),
    ...fitting(
      placed.map(({ step }, index) => ({ step, line: lines[index] ?? "" })),
      rows === undefined ? undefined : rows - 1,
      paint,
    ),
  ];
}

function headLine(run: WorkflowRun, now: number, columns: number, { bold, green, red, yellow, dim }: Paint): string {
  const whole = run.steps.filter(({ id }) => stepOfItem(id) === null);
  const over = whole.filter(({ status }) => isStepOver(status)).length;
  const status = run.paused && !isWorkflowOver(run.status) ? "paused" : run.status;
  const style = { completed: green, failed: red, cancelled: red, paused: yellow, waiting: yellow, running: (text: string) => text }[status];
  const rest = `${span(Math.max(0, (run.endedAt ?? now) - run.createdAt))}, ${over} of ${whole.length} steps${run.usage ? `, ${usageInWords(run.usage)}` : ""}`;
  const name = cut(harmless(run.name), 40);
  return `${bold(name)} ${style(status)} ${dim(cut(rest, Math.max(0, columns - name.length - status.length - 3)))}`;
}

/** Where there is no room for all, what happens now and what went wrong comes first; the rest is counted. */
function fitting(lines: readonly { step: RunStepView; line: string }[], rows: number | undefined, { dim }: Paint): string[] {
  if (rows === undefined || lines.length <= rows) return lines.map(({ line }) => line);
  const matters = ({ step: { status } }: { step: RunStepView }): boolean =>
    status === "running" || status === "review" || status === "failed" || status === "ready";
  const shown = lines.filter(matters).slice(0, Math.max(1, rows - 1));
  const hidden = lines.filter((each) => !shown.includes(each));
  const counts = Map.groupBy(hidden, ({ step }) => step.status);
  const told = [...counts].map(([status, steps]) => `${steps.length} ${status}`).join(", ");
  return [...shown.map(({ line }) => line), dim(`  … ${told}`)];
}

/** One line for a step that has changed, for those who read lines. */
export function stepLine(run: WorkflowRun, step: RunStepView, now: number, paint: Paint): string {
  const { bold, dim } = paint;
  const style = STYLES[step.status];
  const mark = style && style !== "dim" ? paint[style](MARKS[step.status]) : MARKS[step.status];
  const width = Math.max(...run.steps.map(({ id }) => Math.min(WIDEST_NAME, id.length)));
  const took = isStepOver(step.status) && step.startedAt !== null ? ` ${timeOf(step, now)},` : "";
  const said = step.status === "running" ? `runs${triesOf(step)}` : wordsOf(run, step);
  const what = step.status === "completed" ? `completed${took} ${said}` : said;
  const agent = step.agent === null ? "" : `${harmless(step.agent)}: `;
  return `  ${mark} ${bold(cut(harmless(step.id), width).padEnd(width))}  ${agent}${dim(what.trimEnd().replace(/,$/, ""))}`;
}

export function wordsOf(run: WorkflowRun, step: RunStepView): string {
  switch (step.status) {
    case "waiting": {
      const open = step.needs.filter((need) => !isStepOver(run.steps.find(({ id }) => id === need)?.status ?? "completed"));
      const tried = step.attempts > 0 ? `try ${step.attempts} failed${step.error ? `: ${oneLine(step.error.message, SHOWN)}` : ""}; ` : "";
      return open.length === 0 ? `${tried}waits` : `${tried}after ${open.map(harmless).join(", ")}`;
    }
    case "ready":
      return `is next${triesOf(step)}`;
    case "running":
      return `${doesOf(step)}${triesOf(step)}`;
    case "review":
      return "waits for a person's word";
    case "completed": {
      const taken = step.reused ? `from the run ${run.rerunOf?.id ?? "before"}` : "";
      const stale = step.stale?.length
        ? `read ${step.stale.map(({ key, read }) => `${harmless(key)}@${read}`).join(", ")}, changed since`
        : "";
      const used = step.usage ? usageInWords(step.usage) : "";
      return [taken, used, step.attempts > 1 ? `${step.attempts} tries` : "", stale].filter((part) => part !== "").join(", ");
    }
    case "failed":
      return `${step.error ? oneLine(step.error.message, SHOWN) : "failed"}${step.attempts > 1 ? ` (${step.attempts} tries)` : ""}`;
    case "skipped":
      return step.error ? oneLine(step.error.message, SHOWN) : "skipped: its condition does not hold";
    case "cancelled":
      return step.error ? oneLine(step.error.message, SHOWN) : "cancelled";
  }
}

function doesOf({ calls = [], usage }: RunStepView): string {
  const [call] = calls;
  if (!call) return usage ? `thinks, ${usageInWords(usage)}` : "thinks";
  const others = calls.length > 1 ? ` and ${calls.length - 1} more` : "";
  const asks = call.state === "asked" ? "waits for an approval: " : "";
  return `${asks}${harmless(call.tool)} ${argumentsInWords(call.args)}${others}`;
}

function triesOf({ attempts }: RunStepView): string {
  return attempts > 1 ? `, try ${attempts}` : "";
}

export function usageInWords({ inputTokens, outputTokens, costUsd, unpriced }: Usage): string {
  const price = unpriced === 0 ? dollars(costUsd) : costUsd === 0 ? "price unknown" : `${dollars(costUsd)} or more`;
  return `${inputTokens + outputTokens} tokens, ${price}`;
}

function timeOf({ startedAt, endedAt }: RunStepView, now: number): string {
  return startedAt === null ? "" : span(Math.max(0, (endedAt ?? now) - startedAt));
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return most < 1 ? "" : `${text.slice(0, most - 1).toWellFormed()}…`;
}

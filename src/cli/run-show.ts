import { RunsClient } from "../client/runs.ts";
import type { Approval } from "../contract/approvals.ts";
import type { RunCall, RunStep, RunSteps } from "../contract/runs.ts";
import { connectRunning } from "./connect.ts";
import { costInWords, dollars, tokensInWords } from "./money.ts";
import { contextInWords } from "./run-context.ts";
import { moment, span } from "./spans.ts";
import { type GlobalOptions, harmless, oneLine, paint, print } from "./terminal.ts";

interface ShowOptions extends GlobalOptions {
  readonly context?: boolean;
  readonly step?: number;
  readonly full?: boolean;
}

const SHORT = 160;

export async function showRun(id: string, options: ShowOptions): Promise<number> {
  const runs = new RunsClient(await connectRunning(options));
  if (options.context || options.step !== undefined) {
    const context = await runs.context(id, options.step);
    print(options.json ? JSON.stringify(context) : contextInWords(context));
    return 0;
  }
  const told = await runs.steps(id);
  print(options.json ? JSON.stringify(told) : timeline(told, options.full === true));
  return 0;
}

function timeline({ run, input, from, startedAt, steps, approvals, task }: RunSteps, full: boolean): string {
  const { bold, red, green } = paint(process.stdout);
  const status =
    run.status === "completed" ? green(run.status) : run.status === "failed" || run.status === "refused" ? red(run.status) : run.status;
  const took = run.endedAt === null ? "" : ` after ${span(run.endedAt - run.createdAt)}`;
  const waited = startedAt === null ? "" : `, taken up after ${span(startedAt - run.createdAt)}`;
  const lines = [
    `${bold(run.id)} ${run.agent ?? "nobody"} ${status}${took}`,
    row("asked", `${harmless(from)} ${moment(run.createdAt)}${waited}`),
    quoted(input, full),
    ...(task ? [row("for", taskInWords(task))] : []),
    row("route", `${harmless(run.decision.because)} (${run.decision.tier})`),
    ...(run.sessionKey === null ? [] : [row("session", harmless(run.sessionKey))]),
    ...(run.mergedInto === undefined ? [] : [row("taken in", `by run ${run.mergedInto}, which ran already: one answer for both`)]),
    ...steps.flatMap((step) => stepLines(step, approvals, full)),
    ...(run.reply === null ? [] : [row("reply", ""), quoted(run.reply.text, full)]),
    ...(run.error === null ? [] : [row("error", red(`${harmless(run.error.message)} [${harmless(run.error.code)}]`))]),
    ...totals(steps),
  ];
  return lines.filter((line) => line !== "").join("\n");
}

function taskInWords({ id, kind, workflow, step }: NonNullable<RunSteps["task"]>): string {
  if (workflow !== null && step !== null)
    return `step ${harmless(step)} of workflow ${workflow}, task ${id}; see guildhall workflow show ${workflow}`;
  return `task ${id} (${kind}); see guildhall task show ${id}`;
}

function stepLines(step: RunStep, approvals: readonly Approval[], full: boolean): string[] {
  const { dim } = paint(process.stdout);
  if (step.kind === "steered")
    return step.said.flatMap(({ from, text }) => [row("meanwhile", `${harmless(from)} said`), quoted(text, full)]);
  if (step.kind === "compacted") return [row("shortened", "what came before was summarised"), quoted(step.summary ?? "", full)];
  const { model, text, calls, usage, cost, cut } = step;
  const took = usage === null ? "" : `, ${tokensInWords(usage)}, ${costInWords(cost)}`;
  const head = row(`answer ${step.step}`, `${harmless(model)}${dim(took)}${cut ? " (cut off at its limit)" : ""}`);
  return [head, quoted(text, full), ...calls.flatMap((call) => callLines(call, approvals, full))];
}

function callLines(call: RunCall, approvals: readonly Approval[], full: boolean): string[] {
  const { cyan, red, dim } = paint(process.stdout);
  const { tool, args, state, result, startedAt, endedAt } = call;
  const took = startedAt === null || endedAt === null ? "" : `  ${dim(span(endedAt - startedAt))}`;
  const notes: Record<RunCall["state"], string> = {
    asked: "waits for a person",
    intended: "runs",
    waiting: "waits for tasks",
    done: result?.failed ? red("failed") : "",
    refused: red("refused"),
    unknown: red("nobody knows what came of it"),
    brought: "for whoever asked to make",
    none: "not begun",
  };
  const note = notes[state] === "" ? "" : `  ${notes[state]}`;
  const asked = approvals.find(({ id }) => id === call.approval);
  return [
    `    · ${cyan(harmless(tool))} ${full ? harmless(args) : oneLine(args, SHORT)}${took}${note}`,
    ...(asked
      ? [`      ${dim(`approval ${asked.id}: ${asked.state}${asked.answeredBy ? ` by ${harmless(asked.answeredBy)}` : ""}`)}`]
      : []),
    ...(result === null || result.text === "" ? [] : [`      → ${full ? indented(result.text, 8) : oneLine(result.text, SHORT)}`]),
  ];
}

function totals(steps: readonly RunStep[]): string[] {
  const answers = steps.flatMap((step) => (step.kind === "response" ? [step] : []));
  if (answers.length === 0) return [];
  const sum = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };
  let cost = 0;
  let unknown = 0;
  for (const { usage, cost: one } of answers) {
    sum.inputTokens += usage?.inputTokens ?? 0;
    sum.outputTokens += usage?.outputTokens ?? 0;
    sum.cachedInputTokens += usage?.cachedInputTokens ?? 0;
    if (one === null) unknown++;
    else cost += one;
  }
  const unpriced = unknown === 0 ? "" : ` and ${unknown} of unknown price`;
  const calls = answers.reduce((count, step) => count + step.calls.length, 0);
  return [
    row(
      "in all",
      `${counted(answers.length, "answer")}, ${counted(calls, "call")}, ${tokensInWords(sum)}, ${dollars(cost / 1e6)}${unpriced}`,
    ),
  ];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(10)} ${text}`.trimEnd();
}

function quoted(text: string, full: boolean): string {
  if (text === "") return "";
  return `    ${full ? indented(text, 4) : oneLine(text, SHORT)}`;
}

function indented(text: string, by: number): string {
  return harmless(text).replaceAll("\n", `\n${" ".repeat(by)}`);
}

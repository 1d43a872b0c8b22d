import type { WorkflowsClient, WorkflowVerb } from "../client/workflows.ts";
import {
  isWorkflowOver,
  type RerunPlan,
  type RunStepView,
  type WorkflowRun,
  type WorkflowRunFilter,
  type WorkflowRunHead,
  type WorkflowState,
} from "../contract/workflows.ts";
import { moment, span, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, oneLine, paint, print, say } from "./terminal.ts";
import { connected, followRun, startAndFollow, startOnly, throughDaemons, watchedRun } from "./workflow-run.ts";
import { treeOf, usageInWords } from "./workflow-tree.ts";
import { outputsInWords, relayInWords, reviewInWords } from "./workflow-words.ts";

const COLUMNS = 80;
const SHOWN_ARGUMENTS = 60;

interface ListOptions extends GlobalOptions {
  readonly files?: boolean;
  readonly status?: WorkflowState;
  readonly limit?: number;
  readonly before?: string;
}

export async function listWorkflows(options: ListOptions): Promise<number> {
  if (options.files) return listFiles(options);
  const { status, limit, before } = options;
  const filter: WorkflowRunFilter = { status, limit, before };
  const list = await connected(options, (workflows) => workflows.list(filter));
  if (options.json) print(JSON.stringify(list));
  else if (list.runs.length === 0) say("no workflow has run yet; `guildhall workflow list --files` shows those that could");
  else {
    print(table([["id", "workflow", "status", "steps", "by", "began", "took"], ...list.runs.map(rowOf)]));
    if (list.next !== null) say(`there are more: --before ${list.next}`);
  }
  return 0;
}

async function listFiles(options: GlobalOptions): Promise<number> {
  const workflows = await connected(options, (client) => client.files());
  if (options.json) print(JSON.stringify({ workflows }));
  else if (workflows.length === 0) say("there are no files in <home>/workflows/; `guildhall workflow run FILE` takes one from anywhere");
  else {
    const rows = workflows.map(({ name, steps, description, problem }) => [
      harmless(name),
      problem === null ? String(steps) : "?",
      problem === null ? oneLine(description ?? "", SHOWN_ARGUMENTS) : `cannot run: ${oneLine(problem, SHOWN_ARGUMENTS)}`,
    ]);
    print(table([["name", "steps", "about"], ...rows]));
  }
  return 0;
}

export async function showWorkflow(id: string, options: GlobalOptions & { readonly watch?: boolean }): Promise<number> {
  const show = (run: WorkflowRun): number => {
    print(options.json ? JSON.stringify(run) : inWords(run));
    return 0;
  };
  if (!options.watch) return connected(options, async (workflows) => show(await workflows.read(id)));
  const watch = watchedRun();
  return throughDaemons(options, watch, async (workflows, isPrivate) => {
    const run = await workflows.read(watch.id ?? id);
    watch.id = run.id;
    return isWorkflowOver(run.status) ? show(run) : followRun(workflows, run.id, options, isPrivate, watch.stop);
  });
}

export async function changeWorkflow(id: string, verb: WorkflowVerb, options: GlobalOptions): Promise<number> {
  return connected(options, async (workflows, isPrivate) => {
    const run = await workflows.change(id, verb);
    print(options.json ? JSON.stringify(run) : `${run.id} ${harmless(run.name)} ${statusOf(run)}`);
    if (options.json) return 0;
    if (verb === "pause" && run.paused) say(`what runs may finish; \`guildhall workflow resume ${run.id}\` goes on`);
    else sayHowItGoesOn(run, isPrivate);
    return 0;
  });
}

interface ApproveOptions extends GlobalOptions {
  readonly reject?: boolean;
  readonly note?: string;
}

export async function approveStep(id: string, step: string, { reject, note, ...options }: ApproveOptions): Promise<number> {
  return connected(options, async (workflows, isPrivate) => {
    const run = await workflows.review(id, step, reject ? "reject" : "approve", note);
    const verdict = reject ? "rejected" : "approved";
    print(options.json ? JSON.stringify(run) : `${run.id} ${harmless(step)} ${verdict}; the run is ${statusOf(run)}`);
    if (!options.json) sayHowItGoesOn(run, isPrivate);
    return 0;
  });
}

/** A private daemon ends with the command: somebody must go on. */
function sayHowItGoesOn({ id, status }: WorkflowRun, isPrivate: boolean): void {
  if (isWorkflowOver(status)) return;
  say(`\`guildhall workflow show ${id} --watch\` ${isPrivate ? "goes on with it, since no daemon runs" : "follows it"}`);
}

interface RerunOptions extends GlobalOptions {
  readonly from: readonly string[];
  readonly dryRun?: boolean;
  readonly detach?: boolean;
}

/** A new run that takes over what need not be done again; or, dry, what that would be. */
export async function rerunWorkflow(id: string, { from, dryRun, detach, ...options }: RerunOptions): Promise<number> {
  if (dryRun) {
    const plan = await connected(options, (workflows) => workflows.rerun(id, from, true));
    print(options.json ? JSON.stringify(plan) : planInWords(id, from, plan));
    return 0;
  }
  const start = async (workflows: WorkflowsClient): Promise<string> => {
    const plan = await workflows.rerun(id, from, false);
    if (!options.json) say(`${plan.id} runs ${plan.again.length} steps again and takes over ${plan.reused.length}`);
    return plan.id as string;
  };
  return detach ? startOnly(options, start) : startAndFollow(options, start);
}

function planInWords(id: string, from: readonly string[], { again, reused, effects, estimate }: RerunPlan): string {
  const steps = [...again.map((step) => [`  ${harmless(step)}`, "runs again"]), ...reused.map((step) => [`  ${harmless(step)}`, "reused"])];
  const fired = effects.map(({ step, tool, effect, args }) => [
    `  ${harmless(step)}`,
    harmless(tool),
    effect === "unsafe" ? "would happen again" : "would be asked for again, under a new key",
    oneLine(args, SHOWN_ARGUMENTS),
  ]);
  return [
    bold("steps"),
    table(steps),
    "",
    bold("effects outside"),
    fired.length === 0 ? "  none that are known" : table(fired),
    "",
    bold("estimate, by the last time"),
    `  ${usageInWords(estimate)}, ${estimate.calls} answers of models`,
    "",
    `nothing was started; without --dry-run: guildhall workflow rerun ${id} --from ${from.join(" ")}`,
  ].join("\n");
}

function inWords(run: WorkflowRun): string {
  const columns = process.stdout.columns || COLUMNS;
  const outputs = outputsInWords(run);
  const { red } = paint(process.stdout);
  const input = JSON.stringify(run.input);
  return [
    ...treeOf(run, Date.now(), { columns }, paint(process.stdout)),
    "",
    row("id", run.id),
    row("began", `${moment(run.createdAt)}, by ${harmless(run.from)}`),
    ...(run.endedAt === null ? [] : [row("ended", `${moment(run.endedAt)}, after ${span(run.endedAt - run.createdAt)}`)]),
    ...(input === "{}" ? [] : [row("input", oneLine(input, columns))]),
    ...(run.rerunOf === null ? [] : [row("goes back", `to ${run.rerunOf.id}, anew from ${run.rerunOf.from.map(harmless).join(", ")}`)]),
    ...(run.pool === null ? [] : [row("memory", `guildhall pool list ${harmless(run.pool)}`)]),
    ...(run.usage === null ? [] : [row("usage", `${usageInWords(run.usage)}, ${run.usage.calls} answers of models`)]),
    ...(run.relay === null ? [] : [row("relay", relayInWords(run.relay))]),
    ...run.steps.flatMap(({ id, status }) => (status === "review" ? [row("review", reviewInWords(run.id, id))] : [])),
    ...(run.error === null ? [] : [row("error", red(`${harmless(run.error.message)} [${harmless(run.error.code)}]`))]),
    ...run.steps.flatMap((step) => (step.status === "failed" ? errorLines(step) : [])),
    ...(outputs === "" ? [] : ["", outputs]),
  ].join("\n");
}

function errorLines({ id, error, run: turn }: RunStepView): string[] {
  const why = error === null ? "failed" : `${harmless(error.message)} [${harmless(error.code)}]`;
  return [row(harmless(id), why), ...(turn === null ? [] : [row("", `guildhall run show ${turn}`)])];
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(9)} ${text}`;
}

function statusOf({ status, paused }: Pick<WorkflowRun, "status" | "paused">): string {
  return paused && !isWorkflowOver(status) ? "paused" : status;
}

function rowOf(run: WorkflowRunHead): string[] {
  const took = run.endedAt === null ? "" : span(run.endedAt - run.createdAt);
  const steps = `${run.steps.over} of ${run.steps.all}`;
  return [run.id, harmless(run.name), statusOf(run), steps, harmless(run.from), moment(run.createdAt), took];
}

import { setTimeout as sleep } from "node:timers/promises";
import { TasksClient } from "../client/tasks.ts";
import { isTaskOver, type Task, type TaskHit, type TaskRelay, type TaskStatus } from "../contract/tasks.ts";
import { connectRunning } from "./connect.ts";
import { moment, span, table } from "./spans.ts";
import { taskTree } from "./task-tree.ts";
import { costOf, statusInColour } from "./task-words.ts";
import { bold, type GlobalOptions, harmless, oneLine, paint, print, say } from "./terminal.ts";

const MAX_AT_ONCE = 500;
const SHORT = 60;
/** As long as one request may wait. */
const WAITED_AT_ONCE_MS = 60_000;
const LOOK_MS = 1_000;

interface Filter extends GlobalOptions {
  readonly agent?: string;
  readonly status?: TaskStatus;
  readonly limit?: number;
}

export async function listTasks({ agent, status, below, limit, ...options }: Filter & { readonly below?: string }): Promise<number> {
  const tasks = await clientFor(options);
  const wanted = limit ?? 50;
  const found: Task[] = [];
  for (let before: string | undefined; ; ) {
    const part = await tasks.list({ agent, status, below, before, limit: Math.min(MAX_AT_ONCE, wanted - found.length) });
    found.push(...part.tasks);
    if (part.next === null || found.length >= wanted) break;
    before = part.next;
  }
  if (options.json) print(JSON.stringify({ tasks: found }));
  else if (found.length === 0) say("no tasks");
  else {
    const [head = "", ...rows] = table([["task", "agent", "from", "status", "began", "cost", "goal"], ...found.map(rowOf)]).split("\n");
    print([bold(head), ...rows].join("\n"));
  }
  return 0;
}

function rowOf(task: Task): string[] {
  const { id, agent, from, status, createdAt, usage, goal } = task;
  return [
    id,
    harmless(agent ?? "workflow"),
    harmless(from),
    status,
    `${span(Date.now() - createdAt)} ago`,
    costOf(usage),
    oneLine(goal, SHORT),
  ];
}

export async function showTask(id: string, options: GlobalOptions): Promise<number> {
  const tasks = await clientFor(options);
  const task = await tasks.read(id);
  const below: Task[] = [];
  for (let before: string | undefined; ; ) {
    const part = await tasks.list({ below: task.id, before, limit: MAX_AT_ONCE });
    below.push(...part.tasks);
    if (part.next === null) break;
    before = part.next;
  }
  print(options.json ? JSON.stringify({ ...task, below }) : inWords(task, below));
  return 0;
}

function inWords(task: Task, below: readonly Task[]): string {
  const { bold, dim, red } = paint(process.stdout);
  const took = task.endedAt === null ? "" : ` after ${span(task.endedAt - task.createdAt)}`;
  const lines = [
    `${bold(task.id)} ${harmless(task.agent ?? "workflow")} ${statusInColour(task.status)}${took}`,
    `${dim("from")}    ${harmless(task.from)} ${moment(task.createdAt)}, ${task.kind}${task.parent === null ? "" : `, below ${task.parent}`}`,
    ...(task.run === null ? [] : [`${dim("run")}     ${task.run}`]),
    `${dim("took")}    ${costOf(task.usage)}${below.length > 0 ? `, with ${below.length} below it` : ""}`,
    ...(task.relay ? [`${dim("relay")}   ${relayInWords(task.relay)}`] : []),
    `${dim("goal")}    ${harmless(task.goal)}`,
    ...(task.result === null ? [] : [`${dim("result")}  ${harmless(inText(task.result))}`]),
    ...(task.error === null ? [] : [`${dim("error")}   ${red(`${harmless(task.error.message)} [${task.error.code}]`)}`]),
  ];
  return [...lines, ...taskTree(task.id, below)].join("\n");
}

function relayInWords({ returned, asPointers, throughMemory }: TaskRelay): string {
  return `${returned} tokens given back to whoever asked (${asPointers} as pointers), ${throughMemory} read from the shared memory`;
}

function inText(result: unknown): string {
  return typeof result === "string" ? result : JSON.stringify(result, null, 2);
}

export async function openTask(
  agent: string,
  goal: string,
  { wait, ...options }: GlobalOptions & { readonly wait?: number },
): Promise<number> {
  const tasks = await clientFor(options);
  const until = Date.now() + (wait ?? 0);
  let task = await tasks.open({ agent, goal, wait_ms: Math.min(wait ?? 0, WAITED_AT_ONCE_MS) });
  while (!isTaskOver(task.status) && Date.now() < until) {
    await sleep(Math.min(LOOK_MS, until - Date.now()));
    task = await tasks.read(task.id);
  }
  if (wait !== undefined && !isTaskOver(task.status))
    say(`${task.id} is ${task.status} after ${span(wait)}; guildhall task show tells what comes of it`);
  if (options.json) print(JSON.stringify(task));
  else if (wait === undefined || !isTaskOver(task.status)) print(task.id);
  else print(inWords(task, []));
  return isTaskOver(task.status) && task.status !== "completed" ? 1 : 0;
}

export async function cancelTask(id: string, options: GlobalOptions): Promise<number> {
  const task = await (await clientFor(options)).cancel(id);
  if (options.json) print(JSON.stringify(task));
  else say(`${task.id} is cancelled, with everything below it`);
  return 0;
}

interface SearchOptions extends Filter {
  readonly any?: boolean;
  readonly operators?: boolean;
}

export async function searchTasks(q: string, { agent, status, limit, any, operators, ...options }: SearchOptions): Promise<number> {
  const tasks = await clientFor(options);
  const match = operators ? "operators" : any ? "any" : "all";
  const { hits } = await tasks.search({ q, agent, status, limit: limit ?? 20, match });
  if (options.json) print(JSON.stringify({ hits }));
  else if (hits.length === 0) say("nothing was found");
  else print(hits.map(hitText).join("\n"));
  return hits.length === 0 ? 1 : 0;
}

function hitText({ id, agent, from, status, createdAt, snippet }: TaskHit): string {
  const found = harmless(snippet.replace(/\s+/g, " ")).replace(/\*\*(.+?)\*\*/g, (marked, word: string) =>
    process.stdout.isTTY ? paint(process.stdout).yellow(word) : marked,
  );
  return `${bold(id)} ${harmless(agent ?? "workflow")} ${statusInColour(status)} from ${harmless(from)} ${moment(createdAt)}\n  ${found}`;
}

async function clientFor(options: GlobalOptions): Promise<TasksClient> {
  return new TasksClient(await connectRunning(options));
}

import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../client/api-client.ts";
import { ClientError } from "../client/client-error.ts";
import { WorkflowsClient } from "../client/workflows.ts";
import { ERRORS, type ErrorCode } from "../contract/errors.ts";
import { isWorkflowOver, type NewWorkflowRun, type WorkflowProblem, type WorkflowRun } from "../contract/workflows.ts";
import { reachDaemon } from "./background-daemon.ts";
import { type Connection, connect } from "./connect.ts";
import { onInterrupt } from "./interrupts.ts";
import { type GlobalOptions, harmless, print, say, sayError } from "./terminal.ts";
import { NO_PROGRESS, progressOn } from "./workflow-progress.ts";
import { Reviews } from "./workflow-reviews.ts";
import { endOf, outputsInWords, reviewInWords } from "./workflow-words.ts";

export interface RunOptions extends GlobalOptions {
  readonly input?: readonly string[];
  readonly inputJson?: string;
  readonly detach?: boolean;
  readonly idempotencyKey?: string;
}

const INTERRUPTED = 130;
/** For a daemon that is being restarted. One that is gone for longer may not come back to where it was. */
const PATIENCE_MS = 3_000;
const ATTEMPTS = 20;
const LOOK_AGAIN_MS = 500;
/** Whoever was there for so long is another case of going away. */
const LONG_MS = 10_000;
const PATH_LIKE = /[/\\]|\.ya?ml$|\.json$/i;

/** A file by its path, else the name of one in the home. Waits for the end, and shows how it goes. */
export async function runWorkflow(what: string, options: RunOptions): Promise<number> {
  try {
    return await startFrom(what, options);
  } catch (error) {
    const problems = problemsOf(error);
    if (problems.length === 0) throw error;
    return explainProblems(error as ClientError, problems, options);
  }
}

async function startFrom(what: string, options: RunOptions): Promise<number> {
  const asked: NewWorkflowRun = { workflow: await workflowFrom(what, options), input: await inputFrom(options) };
  // The same key for every try: a daemon that goes away in between has started it once, or not at all.
  const key = options.idempotencyKey ?? randomUUID();
  return options.detach
    ? startOnly(options, (workflows) => workflows.start(asked, key))
    : startAndFollow(options, (workflows) => workflows.start(asked, key));
}

/** Somebody must go on with it when we are gone: a daemon in the background, where none runs. */
export async function startOnly(options: GlobalOptions, start: (workflows: WorkflowsClient) => Promise<string>): Promise<number> {
  const id = await start(new WorkflowsClient(withOwnToken(await reachDaemon(options))));
  print(options.json ? JSON.stringify({ id }) : id);
  if (!options.json) say(`it runs; follow it with \`guildhall workflow show ${id} --watch\``);
  return 0;
}

export async function startAndFollow(options: GlobalOptions, start: (workflows: WorkflowsClient) => Promise<string>): Promise<number> {
  const watch = watchedRun();
  return throughDaemons(options, watch, async (workflows, isPrivate) => {
    watch.id ??= await start(workflows);
    return followRun(workflows, watch.id, options, isPrivate, watch.stop);
  });
}

/** A run that somebody follows until Ctrl-C. */
export interface Watch {
  /** Undefined: it is not known that there is such a run. */
  id: string | undefined;
  readonly stop: AbortSignal;
}

export function watchedRun(): Watch {
  const stop = new AbortController();
  onInterrupt(() => stop.abort());
  return { id: undefined, stop: stop.signal };
}

/**
 * A daemon that goes away meanwhile may have been another command's own; the run goes on with whoever has the home next: another one, else ours.
 * Where it is not known whether there is a run, only a refusal is no end: nothing has come of it.
 */
export async function throughDaemons(
  options: GlobalOptions,
  watch: Watch,
  use: (workflows: WorkflowsClient, isPrivate: boolean) => Promise<number>,
): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const begun = performance.now();
    try {
      return await connected(options, use);
    } catch (error) {
      const code = error instanceof ClientError ? error.code : undefined;
      const isGone = code === "daemon.not_running" && watch.id !== undefined;
      if (performance.now() - begun > LONG_MS) attempt = 1;
      if ((!isGone && code !== "daemon.stopping") || attempt === ATTEMPTS) throw error;
      if (attempt === 1)
        say(isGone ? "the daemon is gone; looking for the one that goes on" : "the daemon is stopping; waiting for its end");
      await sleep(LOOK_AGAIN_MS, undefined, { signal: watch.stop }).catch(() => {});
      if (watch.stop.aborted) return watch.id === undefined ? INTERRUPTED : detached(watch.id, true);
    }
  }
}

/** On the home's daemon, else on a private one that ends with us. */
export async function connected<T>(
  options: GlobalOptions,
  use: (workflows: WorkflowsClient, isPrivate: boolean) => Promise<T>,
): Promise<T> {
  const connection: Connection = await connect(options);
  try {
    const client = connection.isPrivate ? connection.client : withOwnToken(connection.client);
    return await use(new WorkflowsClient(client), connection.isPrivate);
  } finally {
    await connection.close();
  }
}

/** As the identity of $GUILDHALL_TOKEN, else as the operator. */
function withOwnToken(client: ApiClient): ApiClient {
  const token = process.env.GUILDHALL_TOKEN;
  return token ? new ApiClient(client.url, token) : client;
}

/** To its end, or until Ctrl-C: that ends the watching, not the run. */
export async function followRun(
  workflows: WorkflowsClient,
  id: string,
  options: GlobalOptions,
  isPrivate: boolean,
  stop: AbortSignal,
): Promise<number> {
  const watched = process.stderr.isTTY === true;
  const progress = options.json && !watched ? NO_PROGRESS : progressOn(process.stderr);
  const reviews = watched && process.stdin.isTTY === true && !options.json ? new Reviews(workflows, progress) : null;
  let last: WorkflowRun | undefined;
  let told = false;
  try {
    for await (const run of workflows.follow(id, stop, PATIENCE_MS)) {
      last = run;
      progress.see(run);
      reviews?.see(run);
      if (reviews === null && run.status === "waiting" && !told) {
        told = true;
        sayWhatItWaitsFor(run);
      }
    }
  } finally {
    reviews?.close();
    progress.end();
  }
  if (last === undefined || !isWorkflowOver(last.status)) return detached(id, isPrivate);
  return report(last, options);
}

/** Everything that is wrong with it, each with its place: nothing has run. */
function explainProblems({ code, message, hint }: ClientError, problems: readonly Problem[], { json }: GlobalOptions): number {
  if (json) print(JSON.stringify({ error: { code, message, hint, retry: ERRORS[code].retry, details: { problems } } }));
  const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
  say(`guildhall: the workflow has ${count}; nothing has run [${code}]`);
  for (const { file, line, column, path, severity, message: what, fix } of problems) {
    const place = [file, line, column].filter((part) => part !== null && part !== undefined).join(":");
    const note = severity === "warning" ? "warning: " : "";
    say(
      harmless(`  ${[place, path.join("."), `${note}${what}`].filter((part) => part !== "").join(": ")}${fix ? `\n    fix: ${fix}` : ""}`),
    );
  }
  return ERRORS[code].exit;
}

type Problem = WorkflowProblem & { readonly file?: string | null; readonly column?: number | null };

/** Of the daemon's refusal, or of what was found here. */
function problemsOf(error: unknown): readonly Problem[] {
  const { code, details } = error as Partial<ClientError>;
  return code === "workflow.invalid" && Array.isArray(details?.problems) ? (details.problems as Problem[]) : [];
}

function sayWhatItWaitsFor({ id, steps }: WorkflowRun): void {
  for (const step of steps) if (step.status === "review") say(reviewInWords(id, step.id));
}

function detached(id: string, isPrivate: boolean): number {
  say(isPrivate ? `\n${id} rests: its daemon ends with this command` : `\n${id} goes on`);
  say(`  guildhall workflow show ${id} --watch    ${isPrivate ? "goes on with it; so does guildhall start" : "follows it"}`);
  say(`  guildhall workflow cancel ${id}          ends it`);
  return INTERRUPTED;
}

function report(run: WorkflowRun, options: GlobalOptions): number {
  if (options.json) print(JSON.stringify(run));
  else {
    const outputs = outputsInWords(run);
    if (outputs !== "") print(outputs);
    say(endOf(run));
  }
  if (run.status === "completed") return 0;
  const code = (run.error && Object.hasOwn(ERRORS, run.error.code) ? run.error.code : "workflow.step_failed") as ErrorCode;
  if (run.error) sayError(run.error.message, code, `Try again what was not done: guildhall workflow resume ${run.id}`);
  return 1;
}

/** A path wins over a name, and what looks like a path is never taken for a name. */
async function workflowFrom(what: string, options: GlobalOptions): Promise<NewWorkflowRun["workflow"]> {
  if (!existsSync(what) && !PATH_LIKE.test(what)) return what;
  const { readWorkflowFile } = await import("../daemon/local-workflow.ts");
  return readWorkflowFile(options, what);
}

async function inputFrom({ input = [], inputJson }: RunOptions): Promise<Record<string, unknown>> {
  const whole = inputJson === undefined ? {} : await objectFrom(inputJson);
  const single = input.map((each) => {
    const at = each.indexOf("=");
    if (at < 1) throw new ClientError("usage.wrong", `--input: expected name=value, not "${each}"`);
    return [each.slice(0, at), jsonOrText(each.slice(at + 1))] as const;
  });
  return { ...whole, ...Object.fromEntries(single) };
}

async function objectFrom(given: string): Promise<Record<string, unknown>> {
  const said = /^\s*[[{]/.test(given) ? given : given === "-" ? await text(process.stdin) : contentOf(given);
  let value: unknown;
  try {
    value = JSON.parse(said);
  } catch (error) {
    throw new ClientError("usage.wrong", `--input-json: expected JSON; ${(error as Error).message}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ClientError("usage.wrong", "--input-json: expected an object with the inputs by their names");
  return value as Record<string, unknown>;
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ClientError("usage.wrong", `--input-json: ${file} cannot be read (${code})`, { cause: error });
  }
}

/** `count=3` is a number, `name=Stripe` a text. */
function jsonOrText(said: string): unknown {
  try {
    return JSON.parse(said);
  } catch {
    return said;
  }
}

import { stopRunIn } from "../../../acts/stop-runs.ts";
import type { TaskParts } from "../../../acts/tasks/task-parts.ts";
import type { Run } from "../../../contract/wire.ts";
import type { Accept } from "../../../drivers/intake/accept.ts";
import type { Caller } from "../../../kernel/caller.ts";
import { canonicalJson, sha256 } from "../../../kernel/canonical-json.ts";
import { Failure, isFailure } from "../../../kernel/failure.ts";
import type { NewId } from "../../../kernel/ids.ts";
import type { Live } from "../../../kernel/live.ts";
import type { Log } from "../../../kernel/log.ts";
import type { RunningTurns } from "../../../kernel/running-turns.ts";
import type { AgentRegistry } from "../../../records/agents/registry.ts";
import { readSteps } from "../../../records/journal/steps.ts";
import { type RunRequest, readRun, readRunInput } from "../../../records/sessions/runs.ts";
import type { Sessions } from "../../../records/sessions/sessions.ts";
import type { Store } from "../../../store/store.ts";
import { takeKey } from "../once.ts";
import { badRequest, failureOf } from "./openai-error.ts";
import type { Asked } from "./read-request.ts";

export const PLATFORM = "openai";
const SESSION_HEADER = "x-guildhall-session";
const ON_CLOSE_HEADER = "x-guildhall-on-close";
/** Of the name of a session: as long as any other part of an address. */
const MAX_NAME = 256;

export interface OpenAiParts {
  readonly store: Store;
  readonly tasks: TaskParts;
  readonly accept: Accept;
  readonly agents: Pick<AgentRegistry, "current">;
  readonly sessions: Sessions;
  readonly live: Live;
  readonly running: RunningTurns;
  readonly newId: NewId;
  readonly log: Log;
}

/** What was asked for, as it came. */
export interface SentRequest {
  readonly caller: Caller;
  readonly path: string;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Agents that somebody else's token may not use are not there for it. */
export function refuseForeign(caller: Caller, agent: string): void {
  if (caller.kind === "agent" && caller.name !== agent)
    throw new Failure("agent.unknown", `there is no agent "${agent}" for this token`, {
      details: { param: "model" },
      hint: "See /v1/models.",
    });
}

/** Hands the request in like any message: once this resolves it will be answered, whoever still listens. */
export async function askAgent(parts: OpenAiParts, sent: SentRequest, asked: Asked): Promise<Run> {
  const { caller, path, headers, body } = sent;
  refuseForeign(caller, asked.agent);
  const key = takeKey(headers.get("idempotency-key") ?? undefined, null);
  // Keys are the caller's own: nobody meets another's answer by choosing the same.
  const id = key === null ? parts.newId() : sha256(canonicalJson([caller.kind, caller.name, path, key]));
  const session = await sessionOf(parts, sent, asked);
  const { instructions, messages, input } = asked.conversation;
  const { tools, settings } = asked;
  const request: RunRequest = {
    messages: session ? null : messages,
    instructions,
    tools,
    settings,
    hash: sha256(canonicalJson([body, headers.get(SESSION_HEADER)])),
  };
  const message = {
    id,
    platform: PLATFORM,
    account: "default",
    chat: session?.name ?? `once-${id}`,
    chat_type: "channel" as const,
    peer: caller.name,
    roles: [],
    agent: asked.agent,
    text: input,
  };
  const { runId, duplicate } = await accept(parts, message, caller, {
    request,
    ...(session?.key === undefined ? {} : { sessionKey: session.key }),
  });
  if (duplicate && (await readRunInput(parts.store.read, runId))?.request?.hash !== request.hash)
    throw new Failure("request.key_reused", "this idempotency key was used for another request");
  const run = await readRun(parts.store.read, runId);
  if (!run || run.status === "refused") throw failureOf(run?.error ?? null);
  return run;
}

async function accept(parts: OpenAiParts, ...args: Parameters<Accept>): ReturnType<Accept> {
  try {
    return await parts.accept(...args);
  } catch (error) {
    if (!isFailure(error, "agent.unknown")) throw error;
    throw new Failure("agent.unknown", error.message, { details: { param: "model" }, hint: "See /v1/models." });
  }
}

/** A conversation that is there already, by its key, or one that is called so; undefined: none, the request brings its own. */
async function sessionOf(
  { sessions }: OpenAiParts,
  { caller, headers }: SentRequest,
  { agent, conversation, tools }: Asked,
): Promise<{ readonly name: string; readonly key?: string } | undefined> {
  const name = headers.get(SESSION_HEADER);
  if (name === null) return undefined;
  if (name === "" || name.length > MAX_NAME * 4) throw badRequest(null, `X-Guildhall-Session: expected 1 to ${MAX_NAME} characters`);
  const last = conversation.messages.at(-1);
  if (last?.role !== "user") throw badRequest("messages", "with X-Guildhall-Session the last message must be the user's");
  if (last.images) throw badRequest("messages", "with X-Guildhall-Session a message is text; send images with the whole conversation");
  if (tools.length > 0) throw badRequest("tools", "with X-Guildhall-Session the agent has its own tools only");
  if (!name.startsWith("agent:")) {
    if (name.length > MAX_NAME) throw badRequest(null, `X-Guildhall-Session: expected 1 to ${MAX_NAME} characters`);
    return { name };
  }
  const found = await sessions.read(caller, name, { limit: 1 });
  if (found.agent !== agent) throw badRequest("model", `the session ${name} is a conversation with ${found.agent}`);
  return { name: sha256(name), key: name };
}

/** The answer reached its limit and is not whole. */
export async function isCut({ store }: OpenAiParts, runId: string): Promise<boolean> {
  const last = (await readSteps(store.read, runId)).findLast(({ kind }) => kind === "response");
  return last?.kind === "response" && last.response.cut === true;
}

/**
 * Whoever closes the connection has not said that the run should end: a lost connection looks the same, and the message was taken. Those
 * who mean it say so beforehand, with `X-Guildhall-On-Close: stop`.
 */
export async function clientLeft(
  { store, tasks, running, log }: OpenAiParts,
  { caller, headers }: SentRequest,
  runId: string,
): Promise<void> {
  if (headers.get(ON_CLOSE_HEADER) !== "stop") return;
  try {
    await store.transact("stop run", (tx) => stopRunIn(tasks, tx, runId, caller.name), "locked");
    running.stop(runId);
  } catch (error) {
    if (!isFailure(error, "run.over")) log.warn("a run could not be stopped", { run: runId, error: String(error) });
  }
}

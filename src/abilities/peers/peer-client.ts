import type { Client } from "@a2a-js/sdk/client";
import { HOPS_EXTENSION, type Hops, type PeerConfig } from "../../contract/a2a.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { PeerTrouble } from "./peer-trouble.ts";
import { answerOf, type PeerTask, peerTaskOf } from "./read-task.ts";

const REQUEST_MS = 30_000;
const LISTED = 100;
const ROLE_USER = 1;
const UNSPECIFIED = 0;
/** Of JSON-RPC and of A2A: what was asked for is not there. */
const TASK_NOT_FOUND = "TaskNotFoundError";

/** Refusals of another Guildhall that are other ones later. */
const PASSING = ["task.too_many", "request.busy", "daemon.stopping"];

export interface PeerMessage {
  /** The same whenever the same message is sent again. */
  readonly id: string;
  readonly text: string;
  readonly contextId: string | null;
  readonly hops: Hops;
}

export type Sent = { readonly task: PeerTask } | { readonly answer: string; readonly contextId: string | null };

export interface PeerCard {
  readonly name: string;
  readonly description: string;
  readonly streaming: boolean;
}

/** One peer. Every call may throw `PeerTrouble`, and takes at most half a minute, watching excepted. */
export interface PeerClient {
  readonly card: PeerCard;
  send(message: PeerMessage, signal: AbortSignal): Promise<Sent>;
  /** The task that this message has opened, where the peer tells of its tasks; undefined: there is none, or it does not tell. */
  find(messageId: string, signal: AbortSignal): Promise<PeerTask | undefined>;
  look(taskId: string, signal: AbortSignal): Promise<PeerTask>;
  /** Until it has ended, or its peer ends the stream, or the signal aborts. What has come of it is to be looked at. */
  watch(taskId: string, signal: AbortSignal): Promise<void>;
  cancel(taskId: string, signal: AbortSignal): Promise<PeerTask>;
}

/** Reads the peer's card first: it tells where and how it is asked. */
export async function peerClient(peer: Pick<PeerConfig, "url" | "token">, signal: AbortSignal): Promise<PeerClient> {
  const client = await within(signal, (limit) => connect(peer, limit));
  const { name, description, capabilities } = await within(signal, (limit) => client.getAgentCard({ signal: limit }));
  const call = <T>(work: (options: { signal: AbortSignal }) => Promise<T>, signal: AbortSignal): Promise<T> =>
    within(signal, (limit) => work({ signal: limit }));
  return {
    card: { name, description, streaming: capabilities?.streaming ?? false },
    send: async (message, signal) => {
      const sent = async (options: { signal: AbortSignal }): Promise<Sent> => {
        const result = await client.sendMessage(requestOf(message), options);
        if (!("messageId" in result)) return { task: peerTaskOf(result) };
        const { text: answer, contextId } = answerOf(result);
        return { answer, contextId };
      };
      return call(sent, signal);
    },
    find: (messageId, signal) =>
      call(async (options) => {
        const { tasks } = await client.listTasks(
          {
            tenant: "",
            contextId: "",
            status: UNSPECIFIED,
            pageSize: LISTED,
            pageToken: "",
            statusTimestampAfter: undefined,
            includeArtifacts: true,
          },
          options,
        );
        const found = tasks.find(({ history }) => history?.some((said) => said.messageId === messageId));
        return found && peerTaskOf(found);
      }, signal).catch((error: unknown) => {
        if (error instanceof PeerTrouble && error.kind === "refused") return undefined;
        throw error;
      }),
    look: (id, signal) =>
      call(async (options) => theSame(id, peerTaskOf(await client.getTask({ tenant: "", id, historyLength: 20 }, options))), signal),
    watch: async (id, signal) => {
      try {
        for await (const { payload } of client.resubscribeTask({ tenant: "", id }, { signal }))
          if (payload?.$case === "task" && peerTaskOf(payload.value).state !== "open") return;
      } catch {
        // A stream is a way to hear of it sooner, and nothing else.
      }
    },
    cancel: (id, signal) =>
      call(async (options) => theSame(id, peerTaskOf(await client.cancelTask({ tenant: "", id, metadata: undefined }, options))), signal),
  };
}

/** What is told of another task is no answer. */
function theSame(id: string, task: PeerTask): PeerTask {
  if (task.id !== id) throw new PeerTrouble("lost", `asked for the task ${id}, it answers with another`);
  return task;
}

async function connect({ url, token }: Pick<PeerConfig, "url" | "token">, signal: AbortSignal): Promise<Client> {
  const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } = await import("@a2a-js/sdk/client");
  const fetchImpl = boundedFetch(new URL(url).origin, token);
  // Many speak 0.3 still: their cards and messages are translated by the SDK.
  const legacyCompat = { enabled: true };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat }), new RestTransportFactory({ fetchImpl, legacyCompat })],
    preferredTransports: ["JSONRPC"],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl: (input, init) => fetchImpl(input, { ...init, signal }), legacyCompat }),
    clientConfig: { polling: true },
  });
  return new URL(url).pathname.endsWith(".json")
    ? factory.createFromUrl(url, "")
    : factory.createFromUrl(url.endsWith("/") ? url : `${url}/`);
}

function requestOf({ id, text, contextId, hops }: PeerMessage) {
  return {
    tenant: "",
    message: {
      messageId: id,
      contextId: contextId ?? "",
      taskId: "",
      role: ROLE_USER,
      parts: [{ content: { $case: "text" as const, value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }],
      metadata: { [HOPS_EXTENSION]: hops },
      extensions: [HOPS_EXTENSION],
      referenceTaskIds: [],
    },
    configuration: { acceptedOutputModes: ["text/plain"], taskPushNotificationConfig: undefined, returnImmediately: true },
    metadata: undefined,
  };
}

async function within<T>(signal: AbortSignal, work: (limit: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const late = AbortSignal.timeout(REQUEST_MS);
  try {
    return await work(AbortSignal.any([signal, late]));
  } catch (error) {
    signal.throwIfAborted();
    throw troubleOf(error);
  }
}

function codesIn(data: unknown): string[] {
  const infos = Array.isArray(data) ? (data as { metadata?: { code?: unknown } }[]) : [];
  return infos.flatMap((info) => (typeof info?.metadata?.code === "string" ? [info.metadata.code] : []));
}

/** Errors of the protocol are answers; everything else (a connection that breaks, a page that is no answer) may be another next time. */
function troubleOf(error: unknown): PeerTrouble {
  const known = [error, (error as Error).cause].find((one) => one instanceof PeerTrouble);
  if (known) return known as PeerTrouble;
  const { name, message, reason, data } = error as Error & { reason?: string; data?: unknown };
  if (name === TASK_NOT_FOUND || reason === "TASK_NOT_FOUND") return new PeerTrouble("unknown", message, { cause: error });
  // Another Guildhall says which of its rules it was.
  if (codesIn(data).some((code) => PASSING.includes(code))) return new PeerTrouble("lost", message, { cause: error });
  if (reason !== undefined) return new PeerTrouble("refused", message, { cause: error });
  return new PeerTrouble("lost", name === "TimeoutError" ? "it takes too long" : message, { cause: error });
}

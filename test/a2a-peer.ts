import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { AgentCard, formatSSEEvent, type Message, Role, SSE_HEADERS, type Task, TaskState } from "@a2a-js/sdk";
import { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  ServerCallContext,
} from "@a2a-js/sdk/server";
import { freePort } from "./free-port.ts";

/** What the agent elsewhere does with a message. `answer` without a task: it answers at once. */
export type Reaction =
  | { readonly completes: string; readonly afterMs?: number; readonly after?: Promise<void> }
  | { readonly fails: string }
  | { readonly asks: string }
  | { readonly rejects: string }
  | { readonly answer: string }
  | { readonly never: true };

export interface SeenCall {
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the client under test sends; tests look inside
  readonly params: any;
  readonly authorization: string | undefined;
}

export interface PeerOptions {
  readonly streaming?: boolean;
  readonly token?: string;
  /** It speaks 0.3 and nothing newer. */
  readonly legacy?: boolean;
  /** Instead of its own address. */
  readonly cardUrl?: string;
}

/** An A2A server made with the official SDK, on one port for as long as the test likes: killed, started again, with or without its memory. */
export class A2aPeer {
  /** By the words of the message. */
  react: (text: string) => Reaction = (text) => ({ completes: `done: ${text}` });
  /** Instead of any answer, where it returns true: the connection breaks, or this is sent. */
  intercept: (method: string, response: ServerResponse) => boolean = () => false;
  /** What it answers instead of the truth. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of the protocol, made wrong on purpose
  lie: (method: string, result: any) => unknown = (_method, result) => result;
  readonly calls: SeenCall[] = [];
  /** Messages that were acted on. */
  readonly executed: Message[] = [];
  readonly cancelled: string[] = [];
  readonly #options: PeerOptions;
  #store = new InMemoryTaskStore();
  #port = 0;
  #server: Server | undefined;
  #handler: DefaultRequestHandler | undefined;

  constructor(options: PeerOptions = {}) {
    this.#options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/agent`;
  }

  async start(): Promise<this> {
    const server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server = server;
    this.#port ||= await freePort();
    await once(server.listen(this.#port, "127.0.0.1"), "listening");
    this.#handler = new DefaultRequestHandler(this.#card(), this.#store, this.#executor());
    return this;
  }

  /** Its connections break. What it knew is there when it starts again, unless it forgets. */
  async stop({ forgets = false } = {}): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (forgets) this.#store = new InMemoryTaskStore();
    await new Promise<void>((resolve) => {
      if (!server) return resolve();
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  #card(): AgentCard {
    const url = this.#options.cardUrl ?? this.url;
    return AgentCard.fromJSON({
      name: "elsewhere",
      description: "An agent of somebody else.",
      version: "1",
      supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      capabilities: { streaming: this.#options.streaming ?? false },
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    });
  }

  #legacyCard(): object {
    const { name, description, version, defaultInputModes, defaultOutputModes } = this.#card();
    const capabilities = { streaming: this.#options.streaming ?? false };
    const common = { name, description, version, defaultInputModes, defaultOutputModes, skills: [], capabilities };
    return { ...common, protocolVersion: "0.3.0", url: this.url, preferredTransport: "JSONRPC" };
  }

  #executor(): AgentExecutor {
    return {
      execute: (context, bus) => this.#execute(context, bus),
      cancelTask: async (taskId, bus) => {
        this.cancelled.push(taskId);
        const task = await this.#store.load(taskId, new ServerCallContext());
        bus.publish(statusOf(taskId, task?.contextId ?? "", TaskState.TASK_STATE_CANCELED));
        bus.finished();
      },
    };
  }

  async #execute({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    this.executed.push(userMessage);
    const content = userMessage.parts[0]?.content;
    const reaction = this.react(content?.$case === "text" ? content.value : "");
    const end = (state: TaskState, text?: string): void => {
      bus.publish(statusOf(taskId, contextId, state, text));
      bus.finished();
    };
    if ("answer" in reaction) {
      bus.publish(AgentEvent.message(messageOf(contextId, reaction.answer)));
      return bus.finished();
    }
    const begun: Task = {
      id: taskId,
      contextId,
      status: { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: undefined },
      artifacts: [],
      history: [userMessage],
      metadata: undefined,
    };
    bus.publish(AgentEvent.task(begun));
    if ("never" in reaction) return new Promise(() => {});
    if ("fails" in reaction) return end(TaskState.TASK_STATE_FAILED, reaction.fails);
    if ("rejects" in reaction) return end(TaskState.TASK_STATE_REJECTED, reaction.rejects);
    if ("asks" in reaction) return end(TaskState.TASK_STATE_INPUT_REQUIRED, reaction.asks);
    await reaction.after;
    if (reaction.afterMs) await new Promise((resolve) => setTimeout(resolve, reaction.afterMs));
    const artifact = {
      artifactId: "a",
      name: "a",
      description: "",
      parts: messageOf(contextId, reaction.completes).parts,
      metadata: undefined,
      extensions: [],
    };
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined }));
    end(TaskState.TASK_STATE_COMPLETED);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization } = request.headers;
    if (request.method === "GET" && request.url?.endsWith("agent-card.json")) {
      this.calls.push({ method: "card", params: null, authorization });
      if (this.intercept("card", response)) return;
      const card = this.#options.legacy ? this.#legacyCard() : AgentCard.toJSON(this.#card());
      return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(card));
    }
    if (this.#options.token !== undefined && authorization !== `Bearer ${this.#options.token}`) return void response.writeHead(401).end();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { method: string; params: unknown };
    this.calls.push({ method: body.method, params: body.params, authorization });
    if (this.intercept(body.method, response)) return;
    const Handler = this.#options.legacy ? LegacyJsonRpcTransportHandler : JsonRpcTransportHandler;
    const handler = new Handler(this.#handler as DefaultRequestHandler);
    const answer = await handler.handle(body, new ServerCallContext({ requestedVersion: "1.0" }));
    if (this.intercept(`${body.method} done`, response)) return;
    if (!(Symbol.asyncIterator in answer))
      return void response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify("result" in answer ? { ...answer, result: this.lie(body.method, answer.result) } : answer));
    response.writeHead(200, SSE_HEADERS);
    for await (const event of answer) response.write(formatSSEEvent(event));
    response.end();
  }
}

function messageOf(contextId: string, text: string): Message {
  return {
    messageId: crypto.randomUUID(),
    contextId,
    taskId: "",
    role: Role.ROLE_AGENT,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

function statusOf(taskId: string, contextId: string, state: TaskState, text?: string) {
  const message = text === undefined ? undefined : messageOf(contextId, text);
  return AgentEvent.statusUpdate({ taskId, contextId, status: { state, message, timestamp: undefined }, metadata: undefined });
}

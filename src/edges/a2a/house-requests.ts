import type {
  AgentCard,
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
} from "@a2a-js/sdk";
import { ExtendedAgentCardNotConfiguredError, PushNotificationNotSupportedError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import { cancelTaskIn } from "../../acts/tasks/cancel-task.ts";
import { isTaskOver } from "../../contract/tasks.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { type AskedTask, countAskedTasks, listAskedTasks, readAskedTask } from "../../records/tasks/asked-tasks.ts";
import { a2aError } from "./a2a-error.ts";
import type { A2aParts } from "./a2a-parts.ts";
import { followTask, taskAtItsEnd } from "./follow-task.ts";
import { openAsked } from "./open-asked.ts";
import { statusesOf, wireTask } from "./wire-task.ts";

const PAGE = 50;
const PAGE_AT_MOST = 100;
const COUNTED_AT_MOST = 10_000;

/** What is asked of one agent by one caller, in one request. */
export class HouseRequests implements A2ARequestHandler {
  readonly #parts: A2aParts;
  readonly #agent: string;
  readonly #caller: Caller;
  readonly #card: AgentCard;
  readonly #signal: AbortSignal;

  constructor(parts: A2aParts, agent: string, caller: Caller, card: AgentCard, signal: AbortSignal) {
    this.#parts = parts;
    this.#agent = agent;
    this.#caller = caller;
    this.#card = card;
    this.#signal = signal;
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.#card;
  }

  async getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    throw new ExtendedAgentCardNotConfiguredError("there is no more to tell than the card does");
  }

  sendMessage(request: SendMessageRequest): Promise<Task> {
    return this.#refusing(async () => {
      const opened = await this.#opened(request);
      const { returnImmediately, historyLength } = request.configuration ?? { returnImmediately: false, historyLength: undefined };
      if (returnImmediately) return wireTask(opened, { historyLength });
      const ended = await taskAtItsEnd(this.#parts, opened.id, this.#signal);
      if (!ended) throw new Failure("daemon.stopping", `task ${opened.id} goes on; ask for it later`);
      return wireTask(ended, { historyLength });
    });
  }

  async *sendMessageStream(request: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    yield* followTask(this.#parts, await this.#refusing(() => this.#opened(request)), this.#signal);
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    return this.#refusing(async () => wireTask(await this.#visible(id), { historyLength }));
  }

  /** What it has begun below it ends too. */
  cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    return this.#refusing(async () => {
      await this.#visible(id);
      const { tasks, running } = this.#parts;
      const stopped = await tasks.store.transact("cancel asked task", (tx) => cancelTaskIn(tasks, tx, id, this.#caller.name), "locked");
      for (const run of stopped) running.stop(run);
      return wireTask(await this.#visible(id));
    });
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const task = await this.#refusing(() => this.#visible(id));
    if (isTaskOver(task.status)) throw new UnsupportedOperationError(`task ${id} is ${task.status}; there is nothing more to hear`);
    yield* followTask(this.#parts, task, this.#signal);
  }

  listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    return this.#refusing(async () => {
      const { reads, query } = this.#listed(request);
      const pageSize = Math.min(PAGE_AT_MOST, Math.max(1, request.pageSize || PAGE));
      const before = request.pageToken === "" ? null : request.pageToken;
      const found = await listAskedTasks(reads, query, before, pageSize + 1);
      const page = found.slice(0, pageSize);
      const shown = { historyLength: request.historyLength, artifacts: request.includeArtifacts ?? false };
      return {
        tasks: page.map((task) => wireTask(task, shown)),
        nextPageToken: found.length > pageSize ? (page.at(-1)?.id ?? "") : "",
        pageSize,
        totalSize: await countAskedTasks(reads, query, COUNTED_AT_MOST),
      };
    });
  }

  createTaskPushNotificationConfig(): Promise<never> {
    return noPush();
  }

  getTaskPushNotificationConfig(): Promise<never> {
    return noPush();
  }

  listTaskPushNotificationConfigs(): Promise<never> {
    return noPush();
  }

  deleteTaskPushNotificationConfig(): Promise<never> {
    return noPush();
  }

  #listed({ contextId, status, statusTimestampAfter }: ListTasksRequest) {
    const since = statusTimestampAfter ? Date.parse(statusTimestampAfter) : null;
    if (since !== null && !Number.isFinite(since)) throw new Failure("request.malformed", "statusTimestampAfter: expected a time");
    const from = this.#caller.kind === "operator" ? null : this.#caller.name;
    const query = { agent: this.#agent, from, statuses: statusesOf(status), conversation: contextId || null, since };
    return { reads: this.#parts.tasks.store.read, query };
  }

  /** A task takes no second message: what follows it in its context is another task. */
  async #opened(request: SendMessageRequest): Promise<AskedTask> {
    const taskId = request.message?.taskId ?? "";
    if (taskId !== "") {
      await this.#visible(taskId);
      throw new UnsupportedOperationError(`task ${taskId} takes no further message; send one with its contextId and without its taskId`);
    }
    return openAsked(this.#parts.tasks, this.#caller, this.#agent, request);
  }

  /** Somebody else's task is none. */
  async #visible(id: string): Promise<AskedTask> {
    const task = await readAskedTask(this.#parts.tasks.store.read, id);
    const isOurs = task?.agent === this.#agent && (this.#caller.kind === "operator" || task.from === this.#caller.name);
    if (!task || !isOurs) throw new Failure("request.not_found", `there is no task "${id.slice(0, 100)}"`);
    return task;
  }

  async #refusing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw a2aError(error, this.#parts.log);
    }
  }
}

async function noPush(): Promise<never> {
  throw new PushNotificationNotSupportedError("nobody is called back from here; ask for the task, or listen to it");
}

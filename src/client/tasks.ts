import {
  type NewTask,
  type Task,
  type TaskHits,
  type TaskList,
  type TaskListFilter,
  type TaskSearchRequest,
  task,
  taskHits,
  taskList,
} from "../contract/tasks.ts";
import type { ApiClient } from "./api-client.ts";

/** Tasks that the token's identity may see. An id may be the beginning of one. */
export class TasksClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  open(asked: NewTask): Promise<Task> {
    return this.#api.post(task, "/api/tasks", asked);
  }

  read(id: string): Promise<Task> {
    return this.#api.get(task, `/api/tasks/${encodeURIComponent(id)}`);
  }

  list(filter: TaskListFilter = {}): Promise<TaskList> {
    return this.#api.get(taskList, "/api/tasks", filter);
  }

  search(request: TaskSearchRequest): Promise<TaskHits> {
    return this.#api.get(taskHits, "/api/tasks/search", request);
  }

  /** It and everything below it. Over already: `task.over`. */
  cancel(id: string): Promise<Task> {
    return this.#api.post(task, `/api/tasks/${encodeURIComponent(id)}/cancel`, {});
  }
}

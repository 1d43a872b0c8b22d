import { askForTaskIn } from "../../acts/tasks/ask-for-task.ts";
import { cancelTaskIn } from "../../acts/tasks/cancel-task.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import { newTask, task, taskHits, taskList, taskListQuery, taskSearchQuery } from "../../contract/tasks.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import { Tasks } from "../../records/tasks/tasks.ts";
import { untilTaskEnds } from "../../records/tasks/until-ended.ts";
import { LOOKERS, MEMBERS, type Route, route } from "./route.ts";

export interface TasksRoutesParts {
  readonly tasks: TaskParts;
  readonly running: RunningTurns;
}

/** What one is asked to do for another. One sees what one has opened or done, and everything below it. */
export function tasksRoutes({ tasks: parts, running }: TasksRoutesParts): Route[] {
  const { store, agents } = parts;
  const tasks = new Tasks(store, { get: (id) => agents.current.agents.get(id) });
  return [
    route({
      method: "POST",
      path: "/api/tasks",
      summary: "Give an agent a task; 200 when it ended within `wait_ms`, else 202",
      allow: MEMBERS,
      body: newTask,
      answers: { 200: task, 202: task },
      handle: async ({ caller, body, signal, transact }) => {
        const { agent, goal, wait_ms } = body;
        const admitted = await transact("open task", async (tx) => {
          const id = await askForTaskIn(parts, tx, caller, { agent, goal });
          return { status: 202, body: await tasks.read(caller, id, tx) };
        });
        const { id } = admitted.body;
        if (wait_ms === 0 || !(await untilTaskEnds(store, id, AbortSignal.any([signal(), AbortSignal.timeout(wait_ms)])))) return admitted;
        return { status: 200, body: await tasks.read(caller, id) };
      },
    }),
    route({
      method: "GET",
      path: "/api/tasks",
      summary: "Tasks that one may see, the newest first",
      allow: LOOKERS,
      query: taskListQuery,
      answers: { 200: taskList },
      handle: async ({ caller, query }) => ({ status: 200, body: await tasks.list(caller, query) }),
    }),
    route({
      method: "GET",
      path: "/api/tasks/search",
      summary: "Tasks found by words of goal, result and error, and by the beginning of an id",
      allow: LOOKERS,
      query: taskSearchQuery,
      answers: { 200: taskHits },
      handle: async ({ caller, query }) => ({ status: 200, body: await tasks.search(caller, query) }),
    }),
    route({
      method: "GET",
      path: "/api/tasks/:id",
      summary: "One task, by its id or the beginning of it, with what it and everything below it took",
      allow: LOOKERS,
      answers: { 200: task },
      handle: async ({ caller, params }) => ({ status: 200, body: await tasks.read(caller, params.id) }),
    }),
    route({
      method: "POST",
      path: "/api/tasks/:id/cancel",
      summary: "End a task and everything below it: after the answer nothing of it is kept any more",
      allow: MEMBERS,
      answers: { 200: task },
      handle: async ({ caller, params, transact }) => {
        let stopped: readonly string[] = [];
        const answer = await transact("cancel task", async (tx) => {
          const id = await tasks.ownId(caller, params.id, tx);
          stopped = await cancelTaskIn(parts, tx, id, caller.name);
          return { status: 200, body: await tasks.read(caller, id, tx) };
        });
        for (const run of stopped) running.stop(run);
        return answer;
      },
    }),
  ];
}

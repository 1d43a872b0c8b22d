import { z } from "zod";
import { askForTaskIn } from "../../acts/tasks/ask-for-task.ts";
import { cancelTaskIn } from "../../acts/tasks/cancel-task.ts";
import { newTask, type Task, taskSearchQuery } from "../../contract/tasks.ts";
import { identifier, text } from "../../contract/text.ts";
import { Tasks } from "../../records/tasks/tasks.ts";
import { untilTaskEnds } from "../../records/tasks/until-ended.ts";
import { check, inWords, type McpParts, type Tool, tool } from "./tool.ts";

const id = identifier.describe("The task's id, or the beginning of it");
const wait_s = z.int().min(0).max(60).default(0).describe("Wait so long for its end");

function tasksOf({ store, agents }: McpParts): Tasks {
  return new Tasks(store, { get: (name) => agents.current.agents.get(name) });
}

async function waited({ store }: McpParts, id: string, seconds: number, signal: AbortSignal): Promise<void> {
  if (seconds > 0) await untilTaskEnds(store, id, AbortSignal.any([signal, AbortSignal.timeout(seconds * 1_000)]));
}

export const taskTools: readonly Tool[] = [
  tool({
    name: "task_open",
    description:
      "Give an agent of this house a task, where it takes tasks from you. It works on its own; task_check tells what came of it.",
    input: z.strictObject({ agent: identifier, goal: text(100_000).describe("All that it needs to know"), wait_s }),
    changes: true,
    call: async (parts, { caller, signal }, args) => {
      const { agent, goal } = check(newTask, { agent: args.agent, goal: args.goal });
      const opened = await parts.store.transact("open task", (tx) => askForTaskIn(parts, tx, caller, { agent, goal }), "locked");
      await waited(parts, opened, args.wait_s, signal);
      return told(await tasksOf(parts).read(caller, opened));
    },
  }),
  tool({
    name: "task_check",
    description: "How a task of yours stands, and what came of it.",
    input: z.strictObject({ id, wait_s }),
    changes: false,
    call: async (parts, { caller, signal }, args) => {
      const tasks = tasksOf(parts);
      const whole = await tasks.idOf(caller, args.id);
      await waited(parts, whole, args.wait_s, signal);
      return told(await tasks.read(caller, whole));
    },
  }),
  tool({
    name: "task_cancel",
    description: "End a task that you have opened, and everything below it.",
    input: z.strictObject({ id }),
    changes: true,
    call: async (parts, { caller }, args) => {
      const tasks = tasksOf(parts);
      const { whole, stopped } = await parts.store.transact(
        "cancel task",
        async (tx) => {
          const whole = await tasks.ownId(caller, args.id, tx);
          return { whole, stopped: await cancelTaskIn(parts, tx, whole, caller.name) };
        },
        "locked",
      );
      for (const run of stopped) parts.running.stop(run);
      return told(await tasks.read(caller, whole));
    },
  }),
  tool({
    name: "task_search",
    description: "Find tasks that you may see, by words of what was asked and what came of it, or by the beginning of an id.",
    input: z.strictObject({
      query: text(1_000),
      limit: z.int().min(1).max(100).default(20),
      match: z.enum(["all", "any", "operators"]).default("all").describe('operators: "a phrase", pref*, -without, AND, OR, NOT'),
    }),
    changes: false,
    call: async (parts, { caller }, { query, limit, match }) => {
      const { hits } = await tasksOf(parts).search(caller, check(taskSearchQuery, { q: query, limit, match }));
      const lines = hits.map(
        (hit) => `${hit.id} ${hit.agent ?? "workflow"}, ${hit.status}, from ${hit.from}, ${inWords(hit.createdAt)}: ${hit.snippet}`,
      );
      return { text: lines.join("\n") || "nothing was found", data: { hits } };
    },
  }),
];

function told(task: Task): { readonly text: string; readonly data: Readonly<Record<string, unknown>> } {
  const { id, agent, status, result, error } = task;
  const said = typeof result === "string" ? result : JSON.stringify(result);
  const end = error ? `: ${error.message} [${error.code}]` : result === null ? "" : `:\n${said}`;
  return { text: `${id} (${agent ?? "workflow"}) is ${status}${end}`, data: { task } };
}

import { z } from "zod";
import { cancelTaskIn } from "../../../acts/tasks/cancel-task.ts";
import { labelsOfTask } from "../../../acts/tasks/task-labels.ts";
import { type TaskHit, taskSearchQuery } from "../../../contract/tasks.ts";
import { identifier, text } from "../../../contract/text.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { Label } from "../../../kernel/label.ts";
import { readTask, type StoredTask } from "../../../records/tasks/task-rows.ts";
import { isBelow, wasOpenedUnder } from "../../../records/tasks/task-tree.ts";
import type { Reads } from "../../../store/engine.ts";
import { defineTool, type Tool } from "../tool.ts";
import type { DelegationParts } from "./delegation-parts.ts";

const { match, limit, agent, status } = taskSearchQuery.shape;

export function taskTools({ tasks, seen }: DelegationParts): Tool[] {
  const { store } = tasks;
  return [
    defineTool({
      name: "task_check",
      polls: true,
      description: "How far a task is, and what came of it: one of yours, or below one of yours.",
      parameters: z.strictObject({ id: identifier.describe("Its id, or the beginning of it") }),
      effect: "pure",
      run: async ({ id }, { caller }) => {
        const found = await seen.read(caller, id);
        return { output: shown(found), labels: await labelsOf(store.read, [found.id]) };
      },
    }),
    defineTool({
      name: "task_cancel",
      description: "End a task that you have opened, or one below it, with everything below that.",
      parameters: z.strictObject({ id: identifier.describe("Its id, or the beginning of it") }),
      effect: "keyed",
      runIn: async (tx, { id }, { caller, task, cause }) => {
        const whole = await seen.idOf(caller, id, tx);
        if (task && (await isBelow(tx, task.id, whole)))
          throw new Failure("request.forbidden", `${whole} is what you are working on; end your turn instead`);
        if (!(await wasOpenedUnder(tx, whole, caller.name)))
          throw new Failure("request.forbidden", `${whole} was opened neither by you nor below a task of yours`);
        const stopped = await cancelTaskIn(tasks, tx, whole, caller.name, cause);
        return { output: { task: whole, status: "cancelled", stopped: stopped.length } };
      },
    }),
    defineTool({
      name: "task_search",
      description:
        "Find tasks by words of their goal and result, or by the beginning of an id: yours, what is below them, and those of agents you see.",
      parameters: z.strictObject({
        query: text(1_000).describe("Words, or the beginning of an id"),
        limit: limit.describe("At most so many"),
        agent: agent.describe("Only those that this agent does"),
        status: status.describe("Only those that are so far"),
        match: match.describe('all words, any of them, or operators: "phrases", AND, OR, NOT, prefix*'),
      }),
      effect: "pure",
      run: async ({ query, ...rest }, { caller }) => {
        const { hits } = await seen.search(caller, { ...rest, q: query });
        return {
          output: { hits: hits.map(hit) },
          labels: await labelsOf(
            store.read,
            hits.map(({ id }) => id),
          ),
        };
      },
    }),
  ];
}

/** Whoever reads what came of a task has seen what it has seen. */
async function labelsOf(reads: Reads, ids: readonly string[]): Promise<Label[]> {
  const labels = new Set<Label>();
  for (const id of ids) {
    const task = (await readTask(reads, id)) as StoredTask | undefined;
    if (task) for (const label of await labelsOfTask(reads, task)) labels.add(label);
  }
  return [...labels];
}

function shown({
  id,
  kind,
  agent: by,
  from,
  goal,
  status: state,
  result,
  error,
  depth,
  createdAt,
  endedAt,
}: Awaited<ReturnType<DelegationParts["seen"]["read"]>>) {
  return {
    task: id,
    kind,
    agent: by,
    from,
    goal,
    status: state,
    ...(result === null ? {} : { result }),
    ...(error === null ? {} : { error }),
    depth,
    since: new Date(createdAt).toISOString(),
    ...(endedAt === null ? {} : { ended: new Date(endedAt).toISOString() }),
  };
}

function hit({ id, agent: by, from, goal, status: state, snippet }: TaskHit) {
  return { task: id, agent: by, from, goal, status: state, snippet };
}

import { z } from "zod";
import { identifier, text } from "./text.ts";
import { usage } from "./usage.ts";

export const TASK_STATUSES = ["queued", "running", "waiting", "completed", "failed", "cancelled", "unknown"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** A task in one of these will not change any more. */
export function isTaskOver(status: TaskStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled" || status === "unknown";
}

/**
 * `child`: of `delegate_task`. `delegate`: of `agent_delegate`. `remote`: with an agent elsewhere. `workflow` and `step`: a run of a workflow, and
 * each of its steps. `schedule`: by the clock. `api`: asked for by a program or an agent elsewhere.
 */
export const TASK_KINDS = ["child", "delegate", "remote", "workflow", "step", "schedule", "api"] as const;
export type TaskKind = (typeof TASK_KINDS)[number];

/** What delegates gave back to whoever asked them, in tokens, and what pointers into the shared memory would have been instead. */
export const taskRelay = z.object({
  returned: z.number(),
  asPointers: z.number(),
  /** Read from the shared memory by whoever did them. */
  throughMemory: z.number(),
});
export type TaskRelay = z.output<typeof taskRelay>;

export const task = z.object({
  id: z.string(),
  kind: z.enum(TASK_KINDS),
  /** Who does it; null: a workflow. */
  agent: z.string().nullable(),
  from: z.string(),
  goal: z.string(),
  status: z.enum(TASK_STATUSES),
  result: z.unknown().nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  parent: z.string().nullable(),
  depth: z.number(),
  /** With everything below it. */
  usage: usage.nullable(),
  createdAt: z.number(),
  endedAt: z.number().nullable(),
  /** The newest of its runs. */
  run: z.string().nullable(),
  /** Where it is a workflow's step. */
  workflow: z.string().nullable(),
  step: z.string().nullable(),
  /** Of it and all below it, where something was delegated and a single task is asked for. */
  relay: taskRelay.nullable().optional(),
});
export type Task = z.output<typeof task>;

export const newTask = z.strictObject({
  agent: identifier,
  goal: text(100_000),
  /** How long to wait for its end before it is answered. */
  wait_ms: z.int().min(0).max(60_000).default(0),
});
export type NewTask = z.input<typeof newTask>;

export const taskHit = z.object({
  id: z.string(),
  agent: z.string().nullable(),
  from: z.string(),
  goal: z.string(),
  status: z.enum(TASK_STATUSES),
  /** With `**` around what was found. */
  snippet: z.string(),
  score: z.number(),
  createdAt: z.number(),
});
export type TaskHit = z.output<typeof taskHit>;
export const taskHits = z.object({ hits: z.array(taskHit) });
export type TaskHits = z.output<typeof taskHits>;

export const taskSearchQuery = z.strictObject({
  q: text(1_000),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  agent: identifier.optional(),
  status: z.enum(TASK_STATUSES).optional(),
  /** `all` (default): every word; `any`; `operators`: phrases in quotes, AND, OR, NOT, prefix*. */
  match: z.enum(["all", "any", "operators"]).default("all"),
});
export type TaskSearchQuery = z.output<typeof taskSearchQuery>;
export type TaskSearchRequest = z.input<typeof taskSearchQuery>;

export const taskListQuery = z.strictObject({
  agent: identifier.optional(),
  status: z.enum(TASK_STATUSES).optional(),
  /** Of this task, those below it. */
  below: z.string().max(100).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(50),
  before: z.string().max(100).optional(),
});
export type TaskListQuery = z.output<typeof taskListQuery>;
export type TaskListFilter = z.input<typeof taskListQuery>;
export const taskList = z.object({ tasks: z.array(task), next: z.string().nullable() });
export type TaskList = z.output<typeof taskList>;

import { type Artifact, type Message, type Part, Role, type Task, TaskState, type TaskStatus } from "@a2a-js/sdk";
import type { TaskStatus as OurStatus } from "../../contract/tasks.ts";
import type { AskedTask } from "../../records/tasks/asked-tasks.ts";

/** A person here may be asked while a task waits; whoever asked for it elsewhere has nothing to add. */
const STATES: Readonly<Record<OurStatus, TaskState>> = {
  queued: TaskState.TASK_STATE_SUBMITTED,
  running: TaskState.TASK_STATE_WORKING,
  waiting: TaskState.TASK_STATE_WORKING,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  cancelled: TaskState.TASK_STATE_CANCELED,
  // The protocol has no word for it that ends anything.
  unknown: TaskState.TASK_STATE_FAILED,
};

export const ANSWER = "answer";

/** Those of ours that the protocol calls so; null: all. */
export function statusesOf(state: TaskState): OurStatus[] | null {
  if (state === TaskState.TASK_STATE_UNSPECIFIED) return null;
  return (Object.keys(STATES) as OurStatus[]).filter((status) => STATES[status] === state);
}

export function contextOf({ id, conversation }: Pick<AskedTask, "id" | "conversation">): string {
  return conversation ?? id;
}

export interface Shown {
  /** Messages at most; absent: all. */
  readonly historyLength?: number | undefined;
  readonly artifacts?: boolean;
}

export function wireTask(task: AskedTask, { historyLength, artifacts = true }: Shown = {}): Task {
  const history = historyLength === 0 ? [] : [messageOf(task, Role.ROLE_USER, task.messageId ?? task.id, task.goal)];
  return {
    id: task.id,
    contextId: contextOf(task),
    status: wireStatus(task),
    artifacts: artifacts && task.status === "completed" ? [answerOf(task.result)] : [],
    history,
    metadata: undefined,
  };
}

export function wireStatus(task: AskedTask): TaskStatus {
  const said = wordsOf(task);
  return {
    state: STATES[task.status],
    message: said === null ? undefined : messageOf(task, Role.ROLE_AGENT, `${task.id}-${task.status}`, said),
    timestamp: new Date(task.endedAt ?? task.createdAt).toISOString(),
  };
}

function wordsOf({ status, error }: AskedTask): string | null {
  if (status === "waiting") return "It waits for a person, or for tasks of its own.";
  if (status === "unknown") return `Nobody knows what came of it: ${error?.message ?? "no reason was given"}`;
  return error === null ? null : `${error.message} (${error.code})`;
}

export function answerOf(result: unknown): Artifact {
  const part =
    typeof result === "string"
      ? textPart(result)
      : { ...textPart(""), content: { $case: "data" as const, value: result }, mediaType: "application/json" };
  return { artifactId: ANSWER, name: ANSWER, description: "", parts: [part], metadata: undefined, extensions: [] };
}

export function textPart(value: string): Part {
  return { content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "text/plain" };
}

function messageOf(task: AskedTask, role: Role, messageId: string, text: string): Message {
  return {
    messageId,
    contextId: contextOf(task),
    taskId: task.id,
    role,
    parts: [textPart(text)],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

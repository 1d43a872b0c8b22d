import { isTaskOver, type TaskStatus } from "../../contract/tasks.ts";
import type { Tx } from "../../store/engine.ts";
import type { MarkedDocument } from "../../store/marked-documents.ts";
import type { Store } from "../../store/store.ts";

/** What tasks are asked for by. */
export const MARKS = {
  viewer: (name: string): string => `viewer ${name}`,
  agent: (id: string): string => `agent ${id}`,
  /** Those that are not over share one: what they do meanwhile is not told to the index. */
  status: (status: TaskStatus): string => `status ${isTaskOver(status) ? status : "open"}`,
};

interface Indexed {
  readonly id: string;
  readonly agent: string | null;
  readonly goal: string;
  readonly viewers: readonly string[];
}

interface Ending {
  readonly status: TaskStatus;
  readonly result: unknown;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export function indexNewTask(store: Store, tx: Tx, task: Indexed): Promise<void> {
  return store.marked.add(tx, documentOf(task, "queued", task.goal));
}

/** How it ended is found too. */
export function indexTaskAgain(store: Store, tx: Tx, task: Indexed, { status, result, error }: Ending): Promise<void> {
  const said = typeof result === "string" ? result : (JSON.stringify(result ?? null) ?? "");
  const parts = [
    task.goal,
    ...(result === null || result === undefined ? [] : [said]),
    ...(error ? [`${error.code}: ${error.message}`] : []),
  ];
  return store.marked.put(tx, documentOf(task, status, parts.join("\n")));
}

function documentOf({ id, agent, viewers }: Indexed, status: TaskStatus, text: string): MarkedDocument {
  const marks = [...viewers.map(MARKS.viewer), ...(agent === null ? [] : [MARKS.agent(agent)]), MARKS.status(status)];
  return { id, text, marks };
}

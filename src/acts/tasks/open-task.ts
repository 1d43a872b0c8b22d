import type { TaskKind } from "../../contract/tasks.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import { addTask, alsoWait, readTaskByKey, type StoredTask, setTaskRun, type TaskSpec } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { startRemoteTaskIn } from "./remote-task.ts";
import { refusalOf } from "./spawn-limits.ts";
import { startTaskRunIn } from "./start-task-run.ts";
import { type Above, holdAbove } from "./task-above.ts";
import type { TaskParts } from "./task-parts.ts";

/** The turn whose call opens a task. */
export interface OpeningTurn {
  readonly run: string;
  /** Its row in the work queue, where it waits for the task. */
  readonly waiter?: number;
}

export interface TaskToOpen {
  readonly kind: Extract<TaskKind, "child" | "delegate" | "remote" | "api" | "schedule">;
  /** Of a `remote` one: `peer:<name>`. */
  readonly agent: string;
  /** By whom: a bare name. */
  readonly from: string;
  /** Null: nobody's turn; what it is a child of, if of anything, is elsewhere (`above`). */
  readonly parent: OpeningTurn | null;
  readonly goal: string;
  /** What the agent is told, where that is more than the goal. */
  readonly input?: string | ((placed: PlacedTask) => string);
  readonly spec?: TaskSpec;
  /** What it may call at most; absent: what the agent may. */
  readonly granted?: Grant;
  /** What whoever asks has seen: the task begins with it. */
  readonly labels?: readonly Label[];
  readonly timeoutMs?: number | null;
  /** The same key by the same one is the same task. */
  readonly idempotencyKey?: string;
  /** Lowers the depth that may be reached below it. */
  readonly maxDepth?: number;
  /** Of a task that an agent elsewhere asks for: what is known to stand above it. */
  readonly above?: Above;
  /** The event that this follows from. */
  readonly causedBy?: number | null;
}

/** What is known of a task once it has its place. */
export interface PlacedTask {
  readonly id: string;
  readonly depth: number;
  readonly maxDepth: number;
}

/** `isNew` false: it was opened before, by the same key. */
export type Opened = { readonly id: string; readonly isNew: boolean } | { readonly refused: Failure };

/**
 * Opens a task and starts its turn, all in the caller's transaction. A refusal is an answer and not an exception: what has been written says
 * so in the ledger (`task.refused`), and is lost if the caller throws inside the transaction. Throw it afterwards.
 */
export async function openTaskIn(parts: TaskParts, tx: Tx, task: TaskToOpen): Promise<Opened> {
  const opened = await openTasksIn(parts, tx, [task]);
  return "refused" in opened ? opened : { id: opened.ids[0] as string, isNew: opened.fresh.length > 0 };
}

/** Several of one turn, all or none. */
export async function openTasksIn(
  parts: TaskParts,
  tx: Tx,
  tasks: readonly TaskToOpen[],
): Promise<{ readonly ids: readonly string[]; readonly fresh: readonly string[] } | { readonly refused: Failure }> {
  const [first] = tasks;
  if (!first) return { ids: [], fresh: [] };
  // Held: whoever counts the open tasks of a turn counts alone.
  const above = await holdAbove(parts, tx, first.parent?.run ?? null, first.above);
  const known = new Map<TaskToOpen, string>();
  for (const task of tasks) {
    const before = task.idempotencyKey === undefined ? undefined : await readTaskByKey(tx, task.from, task.idempotencyKey);
    if (!before) continue;
    if (before.agent !== task.agent || before.goal !== task.goal) {
      const refused = new Failure("request.key_reused", `"${task.idempotencyKey}" names another task of yours: ${before.id}`);
      await tellRefusalIn(parts, tx, task, refused);
      return { refused };
    }
    if (task.parent?.waiter !== undefined && before.endedAt === null) await alsoWait(parts.store, tx, before.id, task.parent.waiter);
    known.set(task, before.id);
  }
  const wanted = tasks.filter((task) => !known.has(task));
  const refused = wanted.length === 0 ? null : await refusalOf(parts, tx, above, wanted);
  if (refused) {
    await tellRefusalIn(parts, tx, first, refused);
    return { refused };
  }
  const fresh: string[] = [];
  for (const task of wanted) {
    const { id, isNew } = await openOne(parts, tx, task, above);
    known.set(task, id);
    if (isNew) fresh.push(id);
  }
  return { ids: tasks.map((task) => known.get(task) as string), fresh };
}

async function openOne(
  parts: TaskParts,
  tx: Tx,
  task: TaskToOpen,
  above: Above,
): Promise<{ readonly id: string; readonly isNew: boolean }> {
  const { store, newId, agents } = parts;
  const { agent, from, goal, kind, parent } = task;
  const { current } = agents;
  const id = newId();
  const limits = current.agents.get(agent)?.subagents;
  const spec: TaskSpec = { ...task.spec, ...(task.labels && task.labels.length > 0 ? { labels: [...task.labels] } : {}) };
  const row = {
    id,
    kind,
    agent,
    from,
    goal,
    parent: above.task,
    parentRun: parent?.run ?? null,
    root: above.root ?? id,
    depth: above.depth + (above.isParent ? 1 : 0),
    // What an agent elsewhere may do below it is that house's to say, within this.
    maxDepth: Math.min(
      above.maxDepth,
      kind === "remote" ? above.maxDepth : (limits?.maxDepth ?? 0),
      task.maxDepth ?? Number.POSITIVE_INFINITY,
    ),
    // A one-off child is the same agent once more.
    chain: kind === "child" ? above.chain : [...above.chain, agent],
    spec,
    waiter: parent?.waiter ?? null,
    timeoutMs: task.timeoutMs ?? null,
    idempotencyKey: task.idempotencyKey ?? null,
  };
  if (!(await addTask(tx, row))) {
    // Somebody was faster, a moment ago.
    const before = (await readTaskByKey(tx, from, task.idempotencyKey as string)) as StoredTask;
    if (row.waiter !== null) await alsoWait(store, tx, before.id, row.waiter);
    return { id: before.id, isNew: false };
  }
  const data = { kind, agent, parent: row.parent, run: row.parentRun, depth: row.depth };
  const [opened] = await store.ledger.append(tx, {
    type: "task.opened",
    actor: from,
    subject: ["task", id],
    causedBy: task.causedBy ?? null,
    data,
  });
  if (kind === "remote") {
    await startRemoteTaskIn(parts, tx, { id, agent, from, spec }, opened as number);
    return { id, isNew: true };
  }
  const { run, work } = await startTaskRunIn(
    parts,
    tx,
    { id, root: row.root, from, spec, agent },
    {
      input: typeof task.input === "function" ? task.input(row) : (task.input ?? goal),
      granted: task.granted ?? current.policy.grantOf(agent),
      causedBy: opened as number,
    },
  );
  await setTaskRun(tx, id, run, work);
  return { id, isNew: true };
}

export async function tellRefusalIn(
  { store }: TaskParts,
  tx: Tx,
  { agent, from, kind, parent, causedBy }: Pick<TaskToOpen, "agent" | "from" | "parent" | "causedBy"> & { readonly kind: TaskKind },
  refused: Failure,
): Promise<void> {
  await store.ledger.append(tx, {
    type: "task.refused",
    actor: from,
    subject: parent ? ["run", parent.run] : ["agent", agent],
    causedBy: causedBy ?? null,
    data: { kind, agent, code: refused.code, because: refused.message },
  });
}

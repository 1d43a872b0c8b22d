import type { RunError } from "../../records/sessions/runs.ts";
import { holdTask } from "../../records/tasks/task-rows.ts";
import { openTasksBelow, type TreeOfTasks } from "../../records/tasks/task-tree.ts";
import type { Tx } from "../../store/engine.ts";
import { endStoppedRunIn } from "../end-run.ts";
import { closeTaskIn } from "./close-task.ts";
import type { TaskParts } from "./task-parts.ts";

export interface EndedTree {
  /** Turns that were stopped: whoever runs them here may be told at once, after the commit. */
  readonly runs: readonly string[];
  /** Workflows below. Their turns are stopped; how they and their steps end is theirs to say (acts/workflows). */
  readonly workflows: readonly string[];
}

interface Ending {
  readonly error: RunError;
  readonly by: string;
  readonly causedBy: number | null;
}

/**
 * Ends all of it in this transaction: work rows, turns, tasks; of the tasks that are named, the turns alone: how they end is the caller's to
 * say. A turn that runs holds its work row while it opens something; so once the rows
 * are taken, a second look finds what was opened meanwhile, and nothing more can come.
 */
export async function endTreeIn(parts: TaskParts, tx: Tx, tree: TreeOfTasks, ending: Ending): Promise<EndedTree> {
  const runs: string[] = [];
  const named = new Set(tree.tasks);
  const workflows = new Set<string>();
  /** The work row with which each was looked at. */
  const looked = new Map<string, number | null>();
  for (;;) {
    const open = (await openTasksBelow(tx, tree)).filter((task) => looked.get(task.id) !== task.work);
    if (open.length === 0) return { runs, workflows: [...workflows] };
    const taken = await parts.store.queue.cancelAll(
      tx,
      open.flatMap(({ work }) => work ?? []),
    );
    for (const task of open) {
      looked.set(task.id, task.work);
      if (task.kind === "workflow" && !named.has(task.id)) workflows.add(task.id);
      const stopped = task.run !== null && task.work !== null && taken.has(task.work);
      const ended = stopped ? await endStoppedRunIn(parts.store, tx, task.run, ending.error, ending.by, ending.causedBy) : null;
      runs.push(...(ended?.ended ?? []));
      if (task.kind === "workflow" || task.kind === "step" || named.has(task.id)) continue;
      // Held: who waits for it beside the first may have come since it was looked at. One that somebody else was faster to end stays as it is.
      const held = await holdTask(parts.store, tx, task.id);
      if (held?.endedAt !== null) continue;
      await closeTaskIn(parts, tx, held, {
        status: "cancelled",
        result: null,
        error: ending.error,
        causedBy: ended?.event ?? ending.causedBy,
        quietly: true,
      });
    }
  }
}

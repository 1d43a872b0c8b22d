import { beginRemoteCancel, readRemoteTask } from "../../records/tasks/remote-tasks.ts";
import type { StoredTask } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { REMOTE_WORK, type RemotePayload } from "../work-kinds.ts";
import type { TaskParts } from "./task-parts.ts";

/** The task was ended here while an agent elsewhere has it: a row that tells that one to stop. */
export async function leaveRemoteIn(
  { store }: TaskParts,
  tx: Tx,
  { id, kind }: Pick<StoredTask, "id" | "kind">,
  causedBy: number,
): Promise<void> {
  const remote = kind === "remote" ? await readRemoteTask(tx, id) : undefined;
  if (!remote || remote.state === "waiting" || remote.state === "over" || remote.cancel !== null) return;
  await beginRemoteCancel(tx, id);
  const payload: RemotePayload = { taskId: id, causedBy };
  await store.queue.enqueue(tx, { kind: REMOTE_WORK, payload });
}

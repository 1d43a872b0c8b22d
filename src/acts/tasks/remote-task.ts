import { peerIn } from "../../contract/a2a.ts";
import { Failure } from "../../kernel/failure.ts";
import {
  addRemoteTask,
  endRemoteTask,
  intendRemoteTask,
  lookedAtRemoteTask,
  loseRemoteTask,
  noteRemoteCancel,
  noteRemoteTask,
  type RemoteTask,
  readRemoteTask,
  setRemoteWork,
  triedRemoteCancel,
} from "../../records/tasks/remote-tasks.ts";
import { holdTask, type StoredTask, type TaskEnd } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { Claim } from "../../store/work-queue.ts";
import { REMOTE_WORK, type RemotePayload } from "../work-kinds.ts";
import { closeTaskIn } from "./close-task.ts";
import type { TaskParts } from "./task-parts.ts";

/** A task for an agent elsewhere: no turn of ours, but a row that drives it. The task's row is there already. */
export async function startRemoteTaskIn(
  { store, agents }: TaskParts,
  tx: Tx,
  { id, agent, from, spec }: Pick<StoredTask, "id" | "from" | "spec"> & { readonly agent: string },
  causedBy: number,
): Promise<void> {
  const peer = peerIn(agent);
  if (peer === null) throw new Failure("internal.bug", `"${agent}" is no agent elsewhere`);
  await addRemoteTask(tx, id, peer, spec.conversation === undefined ? null : JSON.stringify([from, spec.conversation]));
  const payload: RemotePayload = { taskId: id, causedBy };
  // Apart from the agent's turns: any node may ask a peer, also where the agent's own files are on another.
  const tenant = { name: `remote ${from}`, weight: agents.current.agents.get(from)?.weight ?? 1 };
  await setRemoteWork(tx, id, await store.queue.enqueue(tx, { kind: REMOTE_WORK, payload, tenant }));
}

/** From the commit on it may have arrived. */
export function intendRemote({ store }: TaskParts, claim: Claim, taskId: string): Promise<void> {
  return store.transact(
    "intend remote task",
    async (tx) => {
      await store.queue.progressed(tx, claim);
      await intendRemoteTask(tx, taskId);
    },
    "locked",
  );
}

/** What the peer calls it. Answers the task as it is by now: it may have been ended meanwhile. */
export function noteRemote({ store }: TaskParts, claim: Claim, taskId: string, remoteId: string, contextId: string | null) {
  return store.transact(
    "note remote task",
    async (tx) => {
      await store.queue.progressed(tx, claim);
      await noteRemoteTask(tx, taskId, remoteId, contextId);
      return holdTask(store, tx, taskId);
    },
    "locked",
  );
}

/** It goes on elsewhere: until then nothing is held here. */
export function lookAgainLater({ store }: TaskParts, claim: Claim, taskId: string, delayMs: number): Promise<void> {
  return store.transact(
    "look at remote task later",
    async (tx) => {
      await store.queue.park(tx, claim, delayMs);
      await lookedAtRemoteTask(tx, taskId);
    },
    "locked",
  );
}

/** How the peer has ended it, or that nobody can be asked any more. */
export function closeRemote(parts: TaskParts, claim: Claim, taskId: string, end: TaskEnd, causedBy: number): Promise<void> {
  return parts.store.transact(
    "close remote task",
    async (tx) => {
      await parts.store.queue.settle(tx, claim);
      await endRemoteIn(parts, tx, taskId, end, causedBy);
    },
    "locked",
  );
}

async function endRemoteIn(parts: TaskParts, tx: Tx, taskId: string, end: TaskEnd, causedBy: number): Promise<void> {
  const task = await holdTask(parts.store, tx, taskId);
  if (!task || task.endedAt !== null) return;
  await endRemoteTask(tx, taskId);
  await closeTaskIn(parts, tx, task, { ...end, causedBy });
}

/**
 * The peer does not answer. It is asked again after `delayOf`, as long as that has not lasted longer than `patienceMs`; then the task has failed
 * if nothing was ever sent, and otherwise nobody knows what became of it.
 */
export function loseRemote(
  parts: TaskParts,
  claim: Claim,
  task: Pick<StoredTask, "id" | "from">,
  message: string,
  { patienceMs, delayOf, causedBy }: { patienceMs: number; delayOf: (tries: number) => number; causedBy: number },
): Promise<"later" | "over"> {
  const { store } = parts;
  const error = { code: "task.peer_lost", message };
  return store.transact(
    "lose remote task",
    async (tx) => {
      await store.queue.guard(tx, claim);
      await loseRemoteTask(tx, task.id, error);
      const remote = (await readRemoteTask(tx, task.id)) as RemoteTask;
      const left = patienceMs - (remote.lostMs ?? 0);
      if (left <= 0) {
        await store.queue.settle(tx, claim);
        const status = remote.state === "waiting" ? "failed" : "unknown";
        await endRemoteIn(parts, tx, task.id, { status, result: null, error }, causedBy);
        return "over";
      }
      await store.queue.park(tx, claim, Math.min(left, delayOf(remote.tries)));
      if (remote.tries === 1)
        await store.ledger.append(tx, {
          type: "peer.lost",
          actor: task.from,
          subject: ["task", task.id],
          causedBy,
          data: { peer: remote.peer, ...error },
        });
      return "later";
    },
    "locked",
  );
}

/** Every attempt at it has brought the daemon down, or its node with it. */
export function failDeadRemote(parts: TaskParts, dead: { readonly id: number; readonly payload: unknown; readonly error: string | null }) {
  const { taskId, causedBy } = dead.payload as RemotePayload;
  return parts.store.transact(
    "fail dead remote task",
    async (tx) => {
      if (!(await parts.store.queue.cancel(tx, dead.id))) return;
      const remote = await readRemoteTask(tx, taskId);
      const status = remote?.state === "waiting" ? "failed" : "unknown";
      const error = { code: "internal.bug", message: dead.error ?? "every attempt to ask the agent elsewhere ended without an answer" };
      await endRemoteIn(parts, tx, taskId, { status, result: null, error }, causedBy);
    },
    "locked",
  );
}

/** `told`, or why the peer could not be. */
export function noteStopped({ store }: TaskParts, claim: Claim, task: Pick<StoredTask, "id" | "from">, peer: string, outcome: string) {
  return store.transact(
    "note stopped remote task",
    async (tx) => {
      await store.queue.settle(tx, claim);
      await noteRemoteCancel(tx, task.id, outcome);
      await store.ledger.append(tx, { type: "peer.stopped", actor: task.from, subject: ["task", task.id], data: { peer, outcome } });
    },
    "locked",
  );
}

export function stopAgainLater({ store }: TaskParts, claim: Claim, taskId: string, delayMs: number): Promise<void> {
  return store.transact(
    "stop remote task later",
    async (tx) => {
      await store.queue.park(tx, claim, delayMs);
      await triedRemoteCancel(tx, taskId);
    },
    "locked",
  );
}

import type { PeerClient } from "../../abilities/peers/peer-client.ts";
import { PeerTrouble } from "../../abilities/peers/peer-trouble.ts";
import type { Peers } from "../../abilities/peers/peers.ts";
import type { PeerTask } from "../../abilities/peers/read-task.ts";
import {
  closeRemote,
  intendRemote,
  lookAgainLater,
  loseRemote,
  noteRemote,
  noteStopped,
  stopAgainLater,
} from "../../acts/tasks/remote-task.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import type { RemotePayload } from "../../acts/work-kinds.ts";
import type { PeerConfig } from "../../contract/a2a.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure, isFailure } from "../../kernel/failure.ts";
import { jitteredBackoff, type Random } from "../../kernel/random.ts";
import type { Redact } from "../../kernel/redact.ts";
import { houseId } from "../../records/tasks/house-id.ts";
import { type RemoteTask, readRemoteTask } from "../../records/tasks/remote-tasks.ts";
import { readTask, type StoredTask, type TaskEnd } from "../../records/tasks/task-rows.ts";
import type { ClaimedWork } from "../../store/work-queue.ts";
import type { Handler } from "./dispatcher.ts";

export interface RemoteParts extends TaskParts {
  readonly peers: Peers;
  readonly random: Random;
  readonly reached: ReachedPoint;
  /** A peer may send back what it was given. */
  readonly redact: Redact;
}

/** How long the end of a task is waited for at the peer's own stream; after that, nothing is held, and it is looked at now and then. */
const WATCH_MS = 20_000;
const LOOK_MS = 1_000;
const LOOK_MAX_MS = 15_000;
const LOST_MS = 1_000;
const LOST_MAX_MS = 60_000;
/** Telling a peer to stop is worth some minutes, and no more. */
const STOP_TRIES = 8;
const PATIENCE_MS = 15 * 60_000;

/**
 * A task that an agent elsewhere does, from wherever an attempt before this one has come.
 *
 *   waiting → intended → sent → over; ended here first → the peer is told to stop
 *
 * It is sent under our own id for it. Where nobody knows whether it has arrived, the peer is asked for it before it is sent again.
 */
export function doRemoteTask(parts: RemoteParts): Handler {
  const { store, agents, peers } = parts;
  return async (item, lost) => {
    const { taskId } = item.payload as RemotePayload;
    const task = await readTask(store.read, taskId);
    const remote = await readRemoteTask(store.read, taskId);
    if (!task || !remote) throw new Failure("internal.bug", `work item ${item.id} is for the task ${taskId}, which is not there`);
    const peer = agents.current.settings.config.peers[remote.peer];
    const open = (): Promise<PeerClient> => opened(parts, remote.peer, peer, lost);
    try {
      if (task.endedAt !== null) return await stop(parts, item, task, remote, open, lost);
      await goOn(parts, item, task, remote, await open(), lost);
    } catch (error) {
      if (lost.aborted || isFailure(error, "fence.stale")) return;
      if (!(error instanceof PeerTrouble)) throw error;
      peers.forget(remote.peer);
      await settleTrouble(parts, item, task, remote, error, peer?.give_up_after ?? PATIENCE_MS);
    }
  };
}

async function opened({ peers }: RemoteParts, name: string, peer: PeerConfig | undefined, signal: AbortSignal): Promise<PeerClient> {
  if (!peer) throw new PeerTrouble("lost", `the config has no peer "${name}" any more`);
  return peers.open(name, peer, signal);
}

async function goOn(
  parts: RemoteParts,
  item: ClaimedWork,
  task: StoredTask,
  remote: RemoteTask,
  client: PeerClient,
  lost: AbortSignal,
): Promise<void> {
  const { causedBy } = item.payload as RemotePayload;
  if (remote.remoteId !== null) return settle(parts, item, task, remote, await client.look(remote.remoteId, lost));
  const sent = await send(parts, item, task, remote, client, lost);
  if ("answer" in sent) return closeRemote(parts, item, task.id, completed(parts.redact(sent.answer)), causedBy);
  const now = await noteRemote(parts, item, task.id, sent.task.id, sent.task.contextId);
  if (now?.endedAt) return stop(parts, item, task, { ...remote, state: "sent", remoteId: sent.task.id }, async () => client, lost);
  if (sent.task.state !== "open" || !client.card.streaming) return settle(parts, item, task, remote, sent.task);
  await client.watch(sent.task.id, AbortSignal.any([lost, AbortSignal.timeout(WATCH_MS)]));
  await settle(parts, item, task, remote, await client.look(sent.task.id, lost));
}

async function send(
  parts: RemoteParts,
  item: ClaimedWork,
  task: StoredTask,
  { state, contextId }: RemoteTask,
  client: PeerClient,
  lost: AbortSignal,
): ReturnType<PeerClient["send"]> {
  const before = state === "intended" ? await client.find(task.id, lost) : undefined;
  if (before) return { task: before };
  const root = task.root === task.id ? task : await readTask(parts.store.read, task.root);
  const houses = [...(root?.spec.hops ?? []), await houseId(parts.store, parts.newId)];
  await intendRemote(parts, item, task.id);
  parts.reached("remote.intended");
  const message = { id: task.id, text: task.goal, contextId, hops: { houses, depth: task.depth, max_depth: task.maxDepth } };
  const sent = await client.send(message, lost);
  parts.reached("remote.sent");
  return sent;
}

async function settle(parts: RemoteParts, item: ClaimedWork, task: StoredTask, { looks }: RemoteTask, seen: PeerTask): Promise<void> {
  const { causedBy } = item.payload as RemotePayload;
  if (seen.state === "open") return lookAgainLater(parts, item, task.id, jitteredBackoff(looks + 1, parts.random, LOOK_MS, LOOK_MAX_MS));
  await closeRemote(parts, item, task.id, endOf({ ...seen, text: parts.redact(seen.text) }), causedBy);
}

const completed = (text: string): TaskEnd => ({ status: "completed", result: text, error: null });

function endOf({ state, text }: PeerTask): TaskEnd {
  const failed = (message: string): TaskEnd => ({ status: "failed", result: null, error: { code: "task.peer_refused", message } });
  switch (state) {
    case "completed":
      return completed(text);
    case "cancelled":
      return { status: "cancelled", result: null, error: { code: "task.peer_refused", message: text || "it was cancelled there" } };
    case "asks":
      return failed(`it asks for more before it goes on: ${text}`);
    case "rejected":
      return failed(text || "it does not take the task on");
    default:
      return failed(text || "it failed there");
  }
}

async function settleTrouble(
  parts: RemoteParts,
  item: ClaimedWork,
  task: StoredTask,
  remote: RemoteTask,
  { kind, message }: PeerTrouble,
  patienceMs: number,
): Promise<void> {
  const { causedBy } = item.payload as RemotePayload;
  const said = parts.redact(`peer ${remote.peer}: ${message}`);
  const isSent = remote.state === "sent";
  if (kind === "unknown" && isSent)
    return closeRemote(
      parts,
      item,
      task.id,
      { status: "unknown", result: null, error: { code: "task.peer_lost", message: said } },
      causedBy,
    );
  // Whoever has the task may be told tomorrow that our token is good after all: what runs is not given up for it.
  if (kind !== "lost" && !isSent) {
    // That it is refused now says nothing about what was sent before.
    const status = remote.state === "intended" ? "unknown" : "failed";
    return closeRemote(parts, item, task.id, { status, result: null, error: { code: "task.peer_refused", message: said } }, causedBy);
  }
  const delayOf = (tries: number): number => jitteredBackoff(tries, parts.random, LOST_MS, LOST_MAX_MS);
  await loseRemote(parts, item, task, said, { patienceMs, delayOf, causedBy });
}

/** Best effort: what came of it is written down. */
async function stop(
  parts: RemoteParts,
  item: ClaimedWork,
  task: StoredTask,
  remote: RemoteTask,
  open: () => Promise<PeerClient>,
  lost: AbortSignal,
): Promise<void> {
  if (remote.state === "waiting" || remote.state === "over" || remote.cancel !== null) {
    await parts.store.queue.settleAll([item]);
    return;
  }
  try {
    const client = await open();
    const id = remote.remoteId ?? (await client.find(task.id, lost))?.id;
    if (id === undefined) throw new PeerTrouble("lost", "it does not tell what it calls the task");
    await client.cancel(id, lost);
  } catch (error) {
    if (!(error instanceof PeerTrouble)) throw error;
    parts.peers.forget(remote.peer);
    if (error.kind === "lost" && remote.tries + 1 < STOP_TRIES)
      return stopAgainLater(parts, item, task.id, jitteredBackoff(remote.tries + 1, parts.random, LOST_MS, LOST_MAX_MS));
    return noteStopped(parts, item, task, remote.peer, parts.redact(error.message));
  }
  await noteStopped(parts, item, task, remote.peer, "told");
}

import { OWN_HOUSE } from "../../contract/wire.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { sessionKey } from "../../deciders/routing/session-key.ts";
import { addRun, TASK_CHAT } from "../../records/sessions/runs.ts";
import { enterSession } from "../../records/sessions/session-state.ts";
import { refuseLongName } from "../../records/sessions/transcript.ts";
import type { StoredTask } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { sessionLane, TURN_WORK, type TurnPayload } from "../work-kinds.ts";
import type { TaskParts } from "./task-parts.ts";

/** Where the tasks of one conversation between agents come from. */
const CONVERSATION_CHAT = "conversation";

export interface TaskTurn {
  /** What the agent is told to do. */
  readonly input: string;
  /** What it may call in this turn, at most. */
  readonly granted: Grant;
  /** The event that this follows from. */
  readonly causedBy: number;
  readonly delayMs?: number;
}

export interface StartedRun {
  readonly run: string;
  /** Its row in the work queue. */
  readonly work: number;
}

/** A turn for a task: in a session of its own, or in that of its conversation. Whoever starts it writes it down with the task. */
export async function startTaskRunIn(
  { store, newId, agents }: TaskParts,
  tx: Tx,
  task: Pick<StoredTask, "id" | "root" | "from" | "spec"> & { readonly agent: string },
  { input, granted, causedBy, delayMs }: TaskTurn,
): Promise<StartedRun> {
  const runId = newId();
  const { agent } = task;
  const address = addressOf(task);
  const key = sessionKey(agent, address);
  refuseLongName(agent, key);
  const epoch = task.spec.conversation === undefined ? 1 : await enterSession(tx, key, agent, input);
  const decision = { agent, tier: "named" as const, binding: null, because: `the task ${task.id} of ${task.from}`, trace: [] };
  const root = task.root === task.id ? task.id : task.root;
  await addRun(tx, { id: runId, agent, sessionKey: key, address, input, decision, refusal: null, epoch, root, task: task.id, granted });
  const payload: TurnPayload = { runId, causedBy };
  const tenant = { name: agent, weight: agents.current.agents.get(agent)?.weight ?? 1 };
  // Only turns of a conversation have others to wait for.
  const lane = task.spec.conversation === undefined ? {} : { lane: sessionLane(key) };
  const work = { kind: TURN_WORK, payload, tenant, ...lane, ...(delayMs ? { delayMs } : {}) };
  return { run: runId, work: await store.queue.enqueue(tx, work) };
}

function addressOf({ id, from, spec }: Pick<StoredTask, "id" | "from" | "spec">): Address {
  const conversation = spec.conversation;
  const chat = conversation === undefined ? TASK_CHAT : CONVERSATION_CHAT;
  // Two who call their conversations the same have two.
  const peer = conversation === undefined ? id : JSON.stringify([from, conversation]);
  return { platform: OWN_HOUSE, account: "default", guild: null, chat, topic: null, chatType: "dm", peer, roles: [] };
}

import type { SentMail } from "../contract/mail.ts";
import { isOver, OWN_HOUSE } from "../contract/wire.ts";
import { ANY_ARGUMENTS, mayCall } from "../deciders/policy/may-call.ts";
import type { Address } from "../deciders/routing/address.ts";
import type { RouteDecision } from "../deciders/routing/route.ts";
import { sessionKey } from "../deciders/routing/session-key.ts";
import type { NewId } from "../kernel/ids.ts";
import type { Agent } from "../records/agents/agent.ts";
import type { AgentRegistry } from "../records/agents/registry.ts";
import type { Revision } from "../records/agents/revision.ts";
import { refuses, standstillOf } from "../records/agents/standstill.ts";
import {
  holdWakes,
  isChainOver,
  noteWake,
  readWakes,
  stillWaits,
  type WaitingWake,
  type WakeState,
  waitingWakes,
} from "../records/mailbox/wakes.ts";
import { addRun, readRun } from "../records/sessions/runs.ts";
import { enterSession } from "../records/sessions/session-state.ts";
import { refuseLongName } from "../records/sessions/transcript.ts";
import type { Reads, Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { tellAdmission } from "./admit-message.ts";
import { sessionLane, TURN_WORK, type TurnPayload } from "./work-kinds.ts";

export const MAIL_CHAT = "mail";
/** Where turns come from that mail has started: a conversation of its own, whatever the config says about conversations. */
const MAIL_ADDRESS: Address = {
  platform: OWN_HOUSE,
  account: "default",
  guild: null,
  chat: MAIL_CHAT,
  topic: null,
  chatType: "dm",
  peer: "mail",
  roles: [],
};
const INPUT = "New mail.";
const ROLE = "role:";

export interface WakeParts {
  readonly store: Store;
  readonly agents: Pick<AgentRegistry, "current">;
  readonly newId: NewId;
}

export type Woken = NonNullable<SentMail["woken"]>;

/**
 * Starts a turn of whoever receives this mail, if it is an agent of this house: of a role, one of those who have it. A turn that has not
 * opened its mail yet will open this one too, so that there is never more than one that waits. Bounded by the hour for each agent, and
 * for all that goes back to one message: two agents that wake each other come to an end. The mail is stored by now, its mailbox locked.
 */
export async function wakeForMailIn(parts: WakeParts, tx: Tx, mail: WaitingWake): Promise<Woken> {
  const able = recipients(parts.agents.current, mail.to);
  if (able.length === 0) return "nobody";
  const states = await holdWakes(parts.store.dialect, tx, able);
  for (const { run } of states) if (run !== null && (await isWaiting(tx, run))) return "waiting";
  const [chosen] = states.filter(({ left }) => left > 0).sort(longestAsleepFirst);
  if (!chosen) return "limited";
  const runId = parts.newId();
  if (!(await noteWake(tx, chosen.agent, runId, mail.root ?? runId))) return "limited";
  await admitWake(parts, tx, chosen.agent, runId, mail);
  return "started";
}

/**
 * Mail that is to wake somebody and lies there all the same: its turn has failed, its agent came later, or too many were started before.
 * For upkeep, on every node.
 */
export async function wakeForWaitingMail(parts: WakeParts): Promise<number> {
  const { store } = parts;
  const { agents } = parts.agents.current;
  const boxes = [...agents.values()].flatMap(({ id, roles }) => [id, ...roles.map((role) => `${ROLE}${role}`)]);
  let started = 0;
  for (const mail of await waitingWakes(store.read, [...new Set(boxes)])) {
    if (!(await mayStart(parts, mail))) continue;
    const wake = async (tx: Tx): Promise<Woken> => ((await stillWaits(tx, mail.id)) ? wakeForMailIn(parts, tx, mail) : "nobody");
    if ((await store.transact("wake for mail", wake, "locked")) === "started") started++;
  }
  return started;
}

/** A look, without a lock: mail may lie there for days, and is looked at every second. */
async function mayStart({ store, agents }: WakeParts, { to, root }: WaitingWake): Promise<boolean> {
  const able = recipients(agents.current, to);
  const states = await readWakes(store.read, able);
  for (const { run } of states) if (run !== null && (await isWaiting(store.read, run))) return false;
  const tired = states.filter(({ left }) => left <= 0);
  return tired.length < able.length && !(root !== null && (await isChainOver(store.read, root)));
}

/**
 * By name. Who only pauses is woken where nobody else can be: its turn waits for it. Who may not read mail is not: the mail would lie there
 * after the turn as before.
 */
function recipients({ agents, policy }: Revision, to: string): string[] {
  const addressed = to.startsWith(ROLE)
    ? [...agents.values()].filter(({ roles }) => roles.includes(to.slice(ROLE.length)))
    : [...(agents.has(to) ? [agents.get(to) as Agent] : [])];
  // Of one that pauses the rules allow nothing now, whatever they will say then.
  const reads = ({ grant, state }: Agent): boolean =>
    state !== "active" || mayCall({ grant, current: policy, tool: "mail_read", args: ANY_ARGUMENTS }).verdict !== "deny";
  const standing = addressed.filter(reads).map((agent) => ({ id: agent.id, standstill: standstillOf(agent) }));
  const taking = standing.filter(({ standstill }) => standstill === null || !refuses(standstill));
  const active = taking.filter(({ standstill }) => standstill === null);
  return (active.length > 0 ? active : taking).map(({ id }) => id).sort();
}

/** One that was stopped, or failed before it opened its mail, opens none any more. */
async function isWaiting(reads: Reads, runId: string): Promise<boolean> {
  const run = await readRun(reads, runId);
  return run !== undefined && !isOver(run.status);
}

function longestAsleepFirst(a: WakeState, b: WakeState): number {
  return a.lastAt - b.lastAt || (a.agent < b.agent ? -1 : 1);
}

async function admitWake({ store, agents }: WakeParts, tx: Tx, agent: string, runId: string, mail: WaitingWake): Promise<void> {
  const key = sessionKey(agent, MAIL_ADDRESS);
  const because = `mail from ${mail.from} to ${mail.to} asks for it`;
  const decision: RouteDecision = { agent, tier: "named", binding: null, because, trace: [], revision: agents.current.number };
  refuseLongName(agent, key);
  const epoch = await enterSession(tx, key, agent, INPUT);
  const address = MAIL_ADDRESS;
  await addRun(tx, { id: runId, agent, sessionKey: key, address, input: INPUT, decision, refusal: null, epoch, root: mail.root });
  const causedBy = await tellAdmission(store, tx, runId, { externalId: mail.id, address }, { decision, sessionKey: key });
  const payload: TurnPayload = { runId, causedBy };
  const tenant = { name: agent, weight: agents.current.agents.get(agent)?.weight ?? 1 };
  await store.queue.enqueue(tx, { kind: TURN_WORK, payload, lane: sessionLane(key), tenant });
}

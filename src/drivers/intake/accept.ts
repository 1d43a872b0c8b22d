import { admitMessageIn, type MessageToAdmit } from "../../acts/admit-message.ts";
import { answerCommandIn, type CommandMessage } from "../../acts/answer-command.ts";
import type { Delivers } from "../../acts/send-reply.ts";
import { type KeptPlace, sessionLane } from "../../acts/work-kinds.ts";
import type { Admission, InboundMessage } from "../../contract/wire.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { routeNamed } from "../../deciders/routing/route.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { CrashPoint, ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import type { Agent } from "../../records/agents/agent.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { refuses, standstillIn } from "../../records/agents/standstill.ts";
import type { Origin } from "../../records/sessions/origin.ts";
import type { RunError, RunRequest } from "../../records/sessions/runs.ts";
import { WaitingRoom } from "../../records/sessions/waiting.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import type { ClaimedWork, Taker } from "../../store/work-queue.ts";
import type { CommandParts, Talk } from "./commands/command.ts";
import { parseCommand } from "./commands/parse-command.ts";
import { type ChosenCommand, chooseCommand } from "./commands/run-command.ts";
import { standingOf } from "./commands/standing.ts";
import { handoverTargets } from "./handover-targets.ts";

/**
 * Rules told with a stored message: enough to see why, and no more than a message may cost. A hundred were 8 KB, which are written three
 * times until it is answered.
 */
const TOLD_RULES = 20;

/** What comes with a message of a program that speaks with an agent as with a model. Its text is no command, whatever it says. */
export interface Brought {
  readonly request: RunRequest;
  /** The conversation it belongs to; absent: that of its address. */
  readonly sessionKey?: string;
}

/** `poster`: whose token handed it in. */
export type Accept = (message: InboundMessage, poster?: Caller, brought?: Brought) => Promise<Admission>;

/** What comes with a message of a channel. `words`: what the agent is told of it; what is written in it may still be a command. */
export interface FromChannel {
  readonly words: string;
  readonly origin: Origin;
}

/** A message that was looked at and is not stored yet. */
export interface Taken {
  readonly label: string;
  /** Whose turn it will be, unless it is handed over; absent or null: nobody's. */
  readonly agent?: string | null;
  /** Stores it, with whatever else the transaction holds. `by`: this node begins the turn at once. */
  inTx(tx: Tx, by?: Taker | null): Promise<Stored>;
}

export interface Stored {
  readonly admission: Admission | null;
  readonly stopped: readonly string[];
  readonly point: CrashPoint | null;
  /** Work that this node has claimed with it. */
  readonly taken?: ClaimedWork | null;
}

export interface Intake {
  /** Decides whose a message is and stores it. When this resolves, the message cannot be lost. */
  readonly accept: Accept;
  take(message: InboundMessage, from: FromChannel): Taken;
  /** A free place for the turn that a message will cause; null: there is none, or others wait for it. To be given up. */
  placeFor(taken: Taken): KeptPlace | null;
  /** To be told of everything that was stored, after its commit. `place`: what was kept for it. */
  stored(outcome: Stored, place?: KeptPlace | null): void;
}

export interface IntakeCommands extends Omit<CommandParts, "store"> {
  /** Turns here end at once when they are stopped. */
  readonly running: RunningTurns;
  readonly delivers: Delivers;
  /** A free place for a turn of this agent; null: there is none, or others wait for it. */
  readonly keepPlace?: (agent: string) => KeptPlace | null;
}

/** Takes messages from outside. */
export function intake(
  store: Store,
  agents: Pick<AgentRegistry, "current">,
  newId: NewId,
  reached: ReachedPoint,
  commands: IntakeCommands,
): Intake {
  const parts: CommandParts = { store, ...commands };
  const room = new WaitingRoom();
  const take = (message: InboundMessage, poster?: Caller, brought?: Brought, from?: FromChannel): Taken => {
    const address = addressOf(message);
    const revision = agents.current;
    const { router, sessionKeys, settings } = revision;
    const ruled = message.agent === undefined ? router.explain(address, TOLD_RULES) : routeNamed(settings.config.agents, message.agent);
    const decision = { ...ruled, revision: revision.number };
    // An address without an agent is a fact about the config, and is recorded; a wrong name is the caller's mistake.
    if (decision.agent === null && message.agent !== undefined) throw new Failure("agent.unknown", decision.because);
    const admitted: MessageToAdmit = {
      externalId: message.id,
      address,
      text: from?.words ?? message.text,
      decision,
      sessionKey: decision.agent === null ? null : (brought?.sessionKey ?? sessionKeys.keyFor(decision.agent, address)),
      targets: message.agent === undefined ? handoverTargets(revision, address) : null,
      refusalBy: (agent) => refusalBy(revision, agent),
      refuseWhenFull: (tx, agent, sessionKey) => room.enterIn(tx, agent, settings.config.limits, sessionLane(sessionKey)),
      weightOf: (agent) => revision.agents.get(agent)?.weight ?? 1,
      ...(brought ? { request: brought.request } : {}),
      ...(from ? { origin: from.origin, keepsRefused: true } : {}),
    };
    const isThere = !brought && decision.agent !== null && revision.agents.has(decision.agent);
    const command = isThere ? chooseCommand(parseCommand(message.text)) : undefined;
    const runId = newId();
    if (!command)
      return {
        label: "admit message",
        agent: decision.agent,
        inTx: async (tx, by) => {
          const taker = by && decision.agent !== null ? { owner: by.owner, ttlMs: by.ttlMs, tenant: decision.agent } : null;
          const { admission, taken } = await admitMessageIn(store, tx, runId, { ...admitted, taker });
          return { admission, stopped: [], point: admission.duplicate ? null : "message.admitted", taken };
        },
      };
    const asked = commandMessage(command, parts, { ...admitted, text: message.text }, revision, poster);
    return {
      label: "answer command",
      inTx: async (tx) => {
        const { admission, stopped } = await answerCommandIn({ store, newId, delivers: commands.delivers }, tx, runId, asked);
        return { admission, stopped, point: admission.duplicate ? null : "command.ran" };
      },
    };
  };
  const stored = ({ stopped, point, taken }: Stored, place?: KeptPlace | null): void => {
    if (point) reached(point);
    for (const run of stopped) commands.running.stop(run);
    if (taken) place?.begin(taken);
  };
  const placeFor = ({ agent }: Taken): KeptPlace | null => (agent ? (commands.keepPlace?.(agent) ?? null) : null);
  return {
    accept: async (message, poster, brought) => {
      const taken = take(message, poster, brought);
      const place = placeFor(taken);
      try {
        const outcome = await store.transact(taken.label, (tx) => taken.inTx(tx, place), "locked");
        stored(outcome, place);
        return outcome.admission as Admission;
      } finally {
        place?.giveUp();
      }
    },
    take: (message, from) => take(message, undefined, undefined, from),
    placeFor,
    stored,
  };
}

function commandMessage(
  command: ChosenCommand,
  parts: CommandParts,
  message: MessageToAdmit,
  revision: Revision,
  poster: Caller | undefined,
): CommandMessage {
  const { address, decision, sessionKey, targets } = message;
  return {
    ...message,
    command: command.name,
    args: command.args,
    effect: (tx, placed) => {
      const agent = chosenAgent(revision, placed.decision.agent);
      const ruled = chosenAgent(revision, decision.agent);
      const standing = (scopes: Agent) => standingOf(poster, address, revision.settings.config.owners, scopes);
      const talk: Omit<Talk, "args"> = {
        by: `${address.platform}:${address.peer}`,
        standing: standing(agent),
        agent,
        sessionKey: placed.sessionKey as string,
        placed,
        ruled: { agent: ruled.id, sessionKey: sessionKey as string, standing: standing(ruled) },
        named: targets === null,
        agents: revision.agents,
      };
      return command.run(tx, talk, parts);
    },
  };
}

function chosenAgent({ agents }: Revision, id: string | null): Agent {
  const agent = agents.get(id as string);
  if (!agent) throw new Failure("internal.bug", `the agent "${id}" was chosen and is not there`);
  return agent;
}

function refusalBy(revision: Revision, id: string): RunError | null {
  const standstill = standstillIn(revision, id);
  if (!standstill || !refuses(standstill)) return null;
  const { code, message } = standstill.failure;
  return { code, message };
}

function addressOf(message: InboundMessage): Address {
  return {
    platform: message.platform,
    account: message.account,
    guild: message.guild ?? message.team ?? null,
    chat: message.chat,
    topic: message.topic ?? null,
    chatType: message.chat_type,
    peer: message.peer,
    roles: message.roles,
  };
}

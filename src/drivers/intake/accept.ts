import { admitMessage, type MessageToAdmit } from "../../acts/admit-message.ts";
import { answerCommand } from "../../acts/answer-command.ts";
import type { Delivers } from "../../acts/send-reply.ts";
import type { Admission, InboundMessage } from "../../contract/wire.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { routeNamed } from "../../deciders/routing/route.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import type { Agent } from "../../records/agents/agent.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { refuses, standstillIn } from "../../records/agents/standstill.ts";
import type { RunError, RunRequest } from "../../records/sessions/runs.ts";
import { WaitingRoom } from "../../records/sessions/waiting.ts";
import type { Store } from "../../store/store.ts";
import type { CommandParts, Talk } from "./commands/command.ts";
import { parseCommand } from "./commands/parse-command.ts";
import { type ChosenCommand, chooseCommand } from "./commands/run-command.ts";
import { standingOf } from "./commands/standing.ts";
import { handoverTargets } from "./handover-targets.ts";

/** Rules told with a stored message: enough to see why, and no more than a message may cost. */
const TOLD_RULES = 100;

/** What comes with a message of a program that speaks with an agent as with a model. Its text is no command, whatever it says. */
export interface Brought {
  readonly request: RunRequest;
  /** The conversation it belongs to; absent: that of its address. */
  readonly sessionKey?: string;
}

/** `poster`: whose token handed it in. */
export type Accept = (message: InboundMessage, poster?: Caller, brought?: Brought) => Promise<Admission>;

export interface IntakeCommands extends Omit<CommandParts, "store"> {
  /** Turns here end at once when they are stopped. */
  readonly running: RunningTurns;
  readonly delivers: Delivers;
}

/** Takes one message from outside: decides whose it is and stores it. When this resolves, the message cannot be lost. */
export function intake(
  store: Store,
  agents: Pick<AgentRegistry, "current">,
  newId: NewId,
  reached: ReachedPoint,
  commands: IntakeCommands,
): Accept {
  const parts: CommandParts = { store, ...commands };
  const room = new WaitingRoom();
  return async (message, poster, brought) => {
    const address = addressOf(message);
    const revision = agents.current;
    const { router, sessionKeys, settings } = revision;
    const decision = message.agent === undefined ? router.explain(address, TOLD_RULES) : routeNamed(settings.config.agents, message.agent);
    // An address without an agent is a fact about the config, and is recorded; a wrong name is the caller's mistake.
    if (decision.agent === null && message.agent !== undefined) throw new Failure("agent.unknown", decision.because);
    const admitted: MessageToAdmit = {
      externalId: message.id,
      address,
      text: message.text,
      decision,
      sessionKey: decision.agent === null ? null : (brought?.sessionKey ?? sessionKeys.keyFor(decision.agent, address)),
      targets: message.agent === undefined ? handoverTargets(revision, address) : null,
      refusalBy: (agent) => refusalBy(revision, agent),
      refuseWhenFull: (tx, agent) => room.enterIn(tx, agent, settings.config.limits),
      weightOf: (agent) => revision.agents.get(agent)?.weight ?? 1,
      ...(brought ? { request: brought.request } : {}),
    };
    const isThere = !brought && decision.agent !== null && revision.agents.has(decision.agent);
    const command = isThere ? chooseCommand(parseCommand(message.text)) : undefined;
    if (!command) return admitMessage(store, newId, reached, admitted);
    const { admission, stopped } = await answerCommand(
      { store, newId, delivers: commands.delivers },
      reached,
      commandMessage(command, parts, admitted, revision, poster),
    );
    for (const run of stopped) commands.running.stop(run);
    return admission;
  };
}

function commandMessage(
  command: ChosenCommand,
  parts: CommandParts,
  message: MessageToAdmit,
  revision: Revision,
  poster: Caller | undefined,
): Parameters<typeof answerCommand>[2] {
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

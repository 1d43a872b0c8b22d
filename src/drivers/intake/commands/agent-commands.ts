import { sessionLane } from "../../../acts/work-kinds.ts";
import { Failure } from "../../../kernel/failure.ts";
import { didYouMean } from "../../../kernel/nearest.ts";
import type { Agent } from "../../../records/agents/agent.ts";
import { standstillOf } from "../../../records/agents/standstill.ts";
import { handOver, takeBack } from "../../../records/sessions/handovers.ts";
import { readSessionState, setSessionModel } from "../../../records/sessions/session-state.ts";
import type { Tx } from "../../../store/engine.ts";
import type { Store } from "../../../store/store.ts";
import type { Command, Talk } from "./command.ts";

const DEFAULT = "default";
const MODEL_CHARACTERS = 200;

export const agentsCommand: Command = {
  name: "agents",
  takes: "",
  least: 0,
  most: 0,
  help: "the agents there are, with the one that answers here marked",
  who: "anyone",
  run: async (_tx, { agent, agents }) => {
    const listed = [...agents.values()].filter(({ id, state }) => state === "active" || id === agent.id);
    return {
      text: listed.map(({ id, state }) => `${id === agent.id ? "*" : " "} ${id}${state === "active" ? "" : ` (${state})`}`).join("\n"),
    };
  },
};

export const agentCommand: Command = {
  name: "agent",
  takes: "[NAME | default]",
  least: 0,
  most: 1,
  help: "hand this conversation over to another agent; default: back to whom the rules name",
  who: "owner",
  run: async (tx, talk, { store }) => {
    const [name] = talk.args;
    if (name === undefined) return { text: `${talk.agent.id} answers here, because ${talk.placed.decision.because}.` };
    if (talk.named)
      throw new Failure("usage.wrong", "the agent was named with this message, so that the conversation is not handed over", {
        hint: "Leave the agent's name out (`chat` without --agent), then hand it over.",
      });
    if (name.toLowerCase() === DEFAULT || name === talk.ruled.agent) {
      const changed = await takeBack(tx, talk.ruled.sessionKey);
      const rest = changed ? await stillAnswered(tx, talk, store) : "";
      return { text: `${changed ? "From now on" : "As before,"} ${talk.ruled.agent} answers here, as the rules say.${rest}` };
    }
    const chosen = activeAgent(talk, name);
    await handOver(tx, talk.ruled.sessionKey, chosen.id, talk.by);
    const rest = chosen.id === talk.agent.id ? "" : await stillAnswered(tx, talk, store);
    return { text: `From now on ${chosen.id} answers here, until /agent default.${rest}` };
  },
};

/** What was asked before stays with whom it was asked. */
async function stillAnswered(tx: Tx, { agent, sessionKey }: Talk, store: Store): Promise<string> {
  const { length } = await store.queue.inLane(tx, sessionLane(sessionKey));
  return length === 0 ? "" : ` ${agent.id} still answers ${length === 1 ? "the message" : `the ${length} messages`} from before.`;
}

function activeAgent({ agents }: Talk, name: string): Agent {
  const chosen = agents.get(name);
  const known = [...agents.values()].filter(({ state }) => state === "active").map(({ id }) => id);
  if (!chosen)
    throw new Failure("agent.unknown", `there is no agent "${name.slice(0, 100)}"${didYouMean(name, known)}`, {
      hint: "See /agents for those there are.",
    });
  const standstill = standstillOf(chosen);
  if (!standstill) return chosen;
  const { code, message } = standstill.failure;
  throw new Failure(code, message, { hint: "See /agents for those who can answer." });
}

export const modelCommand: Command = {
  name: "model",
  takes: "[NAME | default]",
  least: 0,
  most: 1,
  help: "let another model answer in this conversation; default: the agent's own",
  who: "owner",
  run: async (tx, { args, agent, sessionKey }, { models }) => {
    const [name] = args;
    const { model } = await readSessionState(tx, sessionKey);
    if (name === undefined)
      return { text: `${model ?? agent.model} answers here${model === null ? "" : `; ${agent.id} has ${agent.model}`}.` };
    if (name.toLowerCase() === DEFAULT) {
      if (model !== null) await setSessionModel(tx, sessionKey, agent.id, null);
      return { text: `${agent.model} answers here, ${agent.id}'s own model.` };
    }
    if (name.length > MODEL_CHARACTERS) throw new Failure("usage.wrong", `a model's name has at most ${MODEL_CHARACTERS} characters`);
    models.resolve(name);
    await setSessionModel(tx, sessionKey, agent.id, name);
    return { text: `From the next turn on ${name} answers here, until /model default.` };
  },
};

import { stopSessionsIn } from "../../../acts/stop-runs.ts";
import { sessionLane } from "../../../acts/work-kinds.ts";
import { askForSummary } from "../../../records/journal/summaries.ts";
import { beginEpoch, readSessionState } from "../../../records/sessions/session-state.ts";
import type { Command, Talk } from "./command.ts";
import { reaches } from "./standing.ts";

export const newCommand: Command = {
  name: "new",
  takes: "",
  least: 0,
  most: 0,
  help: "begin anew: the agent no longer sees what was said before",
  who: "own",
  run: async (tx, { sessionKey, agent }) => {
    await beginEpoch(tx, sessionKey, agent.id);
    return { text: `A new conversation with ${agent.id} begins. What was said before is kept, and ${agent.id} no longer sees it.` };
  },
};

export const compactCommand: Command = {
  name: "compact",
  takes: "",
  least: 0,
  most: 0,
  help: "let the agent summarise what was said so far, and go on from the summary",
  who: "own",
  run: async (tx, { sessionKey, agent }) => {
    const { epoch } = await readSessionState(tx, sessionKey);
    await askForSummary(tx, sessionKey, epoch);
    return { text: `With your next message, what was said so far is summarised; ${agent.id} goes on from the summary.` };
  },
};

export const stopCommand: Command = {
  name: "stop",
  takes: "",
  least: 0,
  most: 0,
  help: "stop what is being answered, and everything that waits behind it",
  who: "own",
  run: async (tx, { sessionKey, ruled, by }, { tasks }) => {
    // What was asked before the conversation was handed over may still be going on, with the agent that the rules name.
    const before = reaches(ruled.standing, "own") ? [ruled.sessionKey] : [];
    const stopped = await stopSessionsIn(tasks, tx, [...new Set([sessionKey, ...before])], by);
    if (stopped.length === 0) return { text: "There was nothing to stop." };
    return { text: stopped.length === 1 ? "Stopped." : `Stopped ${stopped.length} messages.`, stopped };
  },
};

export const statusCommand: Command = {
  name: "status",
  takes: "",
  least: 0,
  most: 0,
  help: "who answers here, with which model, and what is going on",
  who: "anyone",
  run: async (tx, talk, { store }) => {
    const { agent, sessionKey } = talk;
    const { epoch, model, messages, lastAt } = await readSessionState(tx, sessionKey);
    const items = await store.queue.inLane(tx, sessionLane(sessionKey));
    const running = items.filter((item) => item.running).length;
    return {
      text: [
        `agent: ${whoAnswers(talk)}`,
        `model: ${model === null ? agent.model : `${model} (for this conversation; ${agent.id} has ${agent.model})`}`,
        `conversation: ${sessionKey}${epoch === 1 ? "" : `, begun anew ${epoch - 1} ${epoch === 2 ? "time" : "times"}`}`,
        `messages: ${messages}${lastAt === null || messages === 0 ? "" : `, the last at ${new Date(lastAt).toISOString()}`}`,
        `now: ${running} being answered, ${items.length - running} waiting`,
      ].join("\n"),
    };
  },
};

/** The reasons tell what stands in the config, and who has handed over what: for owners only. */
function whoAnswers({ agent, placed, standing }: Talk): string {
  const { id, state, because } = agent;
  if (standing !== "owner") return state === "active" ? id : `${id} (${state})`;
  return `${id}${state === "active" ? "" : ` (${state}: ${because})`}, because ${placed.decision.because}`;
}

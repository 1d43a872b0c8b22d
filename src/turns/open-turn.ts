import type { Grant } from "../deciders/policy/grant.ts";
import type { Image, ModelMessage } from "../kernel/model.ts";
import type { Agent } from "../records/agents/agent.ts";
import type { Revision } from "../records/agents/revision.ts";
import type { ContextPart, StoredContext } from "../records/journal/contexts.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import { speakerOf } from "../records/sessions/transcript.ts";
import type { StoredTask } from "../records/tasks/task-rows.ts";
import type { History } from "./history.ts";
import { userMessage } from "./past-turns.ts";
import type { Opening, ToldTurn } from "./request-of.ts";

/** What is known of a turn when it begins. */
export interface TurnFacts {
  readonly run: RunInput;
  /** What it is a turn of; null: of a conversation. */
  readonly task: StoredTask | null;
  readonly agent: Agent;
  readonly revision: Revision;
  readonly grant: Grant;
  /** Whether the agent may call this tool, after asking a person or not. */
  mayUse(tool: string): boolean;
}

/** One thing that a model is told, or several; null: nothing. */
export type PartSource = (facts: TurnFacts) => Promise<ContextPart | readonly ContextPart[] | null>;

/** Who tells what, in the order in which it is told. */
export interface ContextSources {
  /** The same from turn to turn. */
  readonly system: readonly PartSource[];
  /** What may be another in the next turn. */
  readonly recalled: readonly PartSource[];
}

export async function partsOf(sources: readonly PartSource[], facts: TurnFacts): Promise<ContextPart[]> {
  const parts = await Promise.all(sources.map((source) => source(facts)));
  return parts.flatMap((part) => part ?? []).filter(({ text }) => text !== "");
}

/** What comes with the message that is to be answered. `gone`: where images lay that were shown before and are not there as they were. */
export interface Enclosed {
  readonly shown: readonly Image[];
  readonly gone: readonly string[];
}

export function openingOf(context: StoredContext, { summary, omitted, turns }: History, run: RunInput, enclosed?: Enclosed): Opening {
  const { messages, tools: brought = [], settings } = run.request ?? {};
  // Whoever brings a tool by the name of one of ours means his own: he makes the call, so nothing is given away.
  const own = context.tools.filter(({ name }) => !brought.some((tool) => tool.name === name));
  const words = userMessage({ text: run.input, speaker: speakerIn(run) });
  const said = messages ? broughtTurns(messages) : { history: turns, last: [withEnclosed(words, enclosed)] };
  const [fleeting, recalled] = [context.recalled.filter(isFleeting), context.recalled.filter((part) => !isFleeting(part))];
  return {
    system: wordsOfParts(context.system),
    recalled: wordsOfParts(recalled),
    tools: [...own, ...brought],
    summary,
    omitted,
    history: said.history,
    messages: [...fleeting.map(({ text }): ModelMessage => ({ role: "user", text: `[from the gateway] ${text}` })), ...said.last],
    ...(settings ? { settings } : {}),
    cacheKey: run.sessionKey,
  };
}

function withEnclosed(message: ModelMessage & { readonly role: "user" }, enclosed: Enclosed | undefined): ModelMessage {
  if (!enclosed) return message;
  const { shown, gone } = enclosed;
  const lines = gone.map((path) => `\n[the image ${path} is left out here: it is not there any more as it was]`);
  return { ...message, text: message.text + lines.join(""), ...(shown.length > 0 ? { images: shown } : {}) };
}

function isFleeting({ fleeting }: ContextPart): boolean {
  return fleeting === true;
}

/** What comes over a channel says itself who speaks, by name where there is one. */
function speakerIn(run: RunInput): string | null {
  return run.request || run.task !== null || run.origin ? null : speakerOf(run.address);
}

/** A conversation that was brought along, cut where its user speaks. The last cut is what is to be answered. */
function broughtTurns(messages: readonly ModelMessage[]): { readonly history: ToldTurn[]; readonly last: ModelMessage[] } {
  const history: { position: number; messages: ModelMessage[] }[] = [];
  for (const [index, message] of messages.entries()) {
    const newest = history.at(-1);
    if (newest && message.role !== "user") newest.messages.push(message);
    else history.push({ position: index + 1, messages: [message] });
  }
  return { last: history.pop()?.messages ?? [], history };
}

function wordsOfParts(parts: readonly ContextPart[]): string | null {
  return parts.length === 0 ? null : parts.map(({ text }) => text).join("\n\n");
}

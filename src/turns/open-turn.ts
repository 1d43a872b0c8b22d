import type { Tool } from "../abilities/tools/tool.ts";
import type { Grant } from "../deciders/policy/grant.ts";
import { ANY_ARGUMENTS, mayCall } from "../deciders/policy/may-call.ts";
import type { Policy } from "../deciders/policy/policy.ts";
import type { ModelMessage, ToolOffer } from "../kernel/model.ts";
import type { Agent } from "../records/agents/agent.ts";
import type { Revision } from "../records/agents/revision.ts";
import type { ContextPart, StoredContext } from "../records/journal/contexts.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import type { Opening } from "./request-of.ts";

/** What is known of a turn when it begins. */
export interface TurnFacts {
  readonly run: RunInput;
  readonly agent: Agent;
  readonly revision: Revision;
  readonly grant: Grant;
  /** Whether the agent may call this tool, after asking a person or not. */
  mayUse(tool: string): boolean;
}

/** One thing that a model is told; null: nothing. */
export type PartSource = (facts: TurnFacts) => Promise<ContextPart | null>;

/** Who tells what, in the order in which it is told. */
export interface ContextSources {
  /** The same from turn to turn. */
  readonly system: readonly PartSource[];
  /** What may be another in the next turn. */
  readonly recalled: readonly PartSource[];
}

/** The tools that a model is told of: those it may call, in an order that stays the same. */
export function offersOf(tools: ReadonlyMap<string, Tool>, grant: Grant, policy: Policy): ToolOffer[] {
  return [...tools.values()]
    .filter(({ name }) => mayCall({ grant, current: policy, tool: name, args: ANY_ARGUMENTS }).verdict !== "deny")
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, description, parameters }) => ({ name, description, parameters }));
}

export async function partsOf(sources: readonly PartSource[], facts: TurnFacts): Promise<ContextPart[]> {
  const parts = await Promise.all(sources.map((source) => source(facts)));
  return parts.filter((part) => part !== null && part.text !== "") as ContextPart[];
}

export function openingOf(
  context: StoredContext,
  messages: readonly ModelMessage[],
  run: RunInput,
  callers: Pick<Opening, "tools" | "settings"> | null,
): Opening {
  const brought = callers?.tools ?? [];
  // Whoever brings a tool by the name of one of ours means his own: he makes the call, so nothing is given away.
  const own = context.tools.filter(({ name }) => !brought.some((tool) => tool.name === name));
  return {
    system: wordsOfParts(context.system),
    recalled: wordsOfParts(context.recalled),
    tools: [...own, ...brought],
    messages,
    ...(callers?.settings ? { settings: callers.settings } : {}),
    cacheKey: run.sessionKey,
  };
}

function wordsOfParts(parts: readonly ContextPart[]): string | null {
  return parts.length === 0 ? null : parts.map(({ text }) => text).join("\n\n");
}

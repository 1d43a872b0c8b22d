import { z } from "zod";
import type { Note } from "../../../contract/memory.ts";
import { text } from "../../../contract/text.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { Label } from "../../../kernel/label.ts";
import type { Memory } from "../../../records/memory/memory.ts";
import { MEMORY_LIMITS } from "../../../records/memory/memory.ts";
import type { Standpoint } from "../../../records/memory/standpoint.ts";
import type { Sessions } from "../../../records/sessions/sessions.ts";
import type { Reads } from "../../../store/engine.ts";
import { type CallContext, defineTool, type Tool, type ToolOutcome } from "../tool.ts";
import { sessionSearchTool } from "./session-search.ts";
import { standpointOf } from "./standpoint-of.ts";

export interface MemoryParts {
  readonly memory: Memory;
  readonly sessions: Sessions;
  readonly reads: Reads;
}

const FOUND = 10;
const CANDIDATES = 5;

/** `memory_save`, `memory_search`, `memory_forget` and `session_search`. */
export function memoryTools({ memory, sessions, reads }: MemoryParts): Tool[] {
  return [saveTool(memory), searchTool(memory), forgetTool(memory), sessionSearchTool(sessions, reads)];
}

function saveTool(memory: Memory): Tool {
  return defineTool({
    name: "memory_save",
    description:
      "Save a note for later conversations: a fact, a preference, a decision, in one or two sentences that make sense on their own. What is saved in a private chat is recalled only with the same person, unless `for` is everyone.",
    parameters: z.strictObject({
      text: text(MEMORY_LIMITS.characters).describe("The note."),
      pin: z
        .boolean()
        .default(false)
        .describe("Keep it in mind in every conversation, not only when it is found. For the few things that always matter."),
      for: z.enum(["here", "everyone"]).default("here").describe("everyone: whoever talks with you may hear it."),
    }),
    effect: "keyed",
    runIn: async (tx, { text: words, pin, for: whom }, context) => {
      const labels = [...context.labels];
      if (labels.length > 0 && (pin || whom === "everyone")) throw tooFar(pin, labels);
      const note = { text: words, pinned: pin, labels, run: context.run.id, ...(whom === "everyone" ? { circle: "all" as const } : {}) };
      const { id, known } = await memory.saveIn(tx, standpoint(context), note);
      const there = `This note was there already, as ${id}${pin ? ", and is pinned" : ""}.`;
      return { output: known ? there : `Saved as ${id}.`, told: { id, known } };
    },
  });
}

/** What every turn is told, or other people are, must not come from a page or hold a secret without anybody having seen it. */
function tooFar(pin: boolean, labels: readonly Label[]): Failure {
  const seen = labels.includes("external") ? "words from outside" : "a secret";
  return new Failure("tool.denied", `this turn has read ${seen}: a note of it can be saved, but not ${pin ? "pinned" : "for everyone"}`, {
    hint: `Save it without \`${pin ? "pin" : "for"}\`, or ask the user to have it done in a conversation of its own.`,
  });
}

function searchTool(memory: Memory): Tool {
  return defineTool({
    name: "memory_search",
    description: "Find notes that were saved earlier, by their words. Answers the best ones with their ids.",
    parameters: z.strictObject({ query: text(1_000).describe("Words of the note.") }),
    effect: "pure",
    run: async ({ query }, context) => {
      const from = standpoint(context);
      const whole = await memory.search(from, query, FOUND, "all");
      const notes = whole.length > 0 ? whole : await memory.search(from, query, FOUND, "any");
      if (notes.length === 0) return { output: "No note was found." };
      return { output: notes.map(inWords).join("\n"), ...labelled(notes), told: { found: notes.length } };
    },
  });
}

function forgetTool(memory: Memory): Tool {
  return defineTool({
    name: "memory_forget",
    description: "Forget a note for good: by its id, or by words that only this note has.",
    parameters: z.strictObject({
      id: text(40).optional().describe("As memory_search shows it."),
      query: text(1_000).optional().describe("Instead of an id."),
    }),
    effect: "keyed",
    // For good: a page that says so is no reason.
    consequential: true,
    runIn: async (tx, { id, query }, context): Promise<ToolOutcome> => {
      if ((id === undefined) === (query === undefined))
        throw new Failure("tool.bad_arguments", "memory_forget: expected either an id or a query");
      const from = standpoint(context);
      // With every word: a note that shares one with the query is not the one that was meant.
      const candidates = query === undefined ? [] : await memory.search(from, query, CANDIDATES, "all", tx);
      if (query !== undefined && candidates.length === 0) return { output: "No such note was found.", failed: true };
      if (candidates.length > 1)
        return {
          output: `Several notes fit; nothing was forgotten. Say which, by its id:\n${candidates.map(inWords).join("\n")}`,
          failed: true,
          ...labelled(candidates),
        };
      const forgotten = await memory.forgetFrom(tx, from, id ?? (candidates[0] as Note).id, context.agent.id);
      return { output: `Forgotten: ${forgotten.id}.`, told: { id: forgotten.id } };
    },
  });
}

function standpoint({ agent, revision, run }: CallContext): Standpoint {
  return standpointOf(agent, revision, run.address);
}

function labelled(notes: readonly Note[]): Pick<ToolOutcome, "labels"> {
  return { labels: [...new Set(notes.flatMap((note) => note.labels))] };
}

function inWords({ id, text: words, labels, createdAt, pinned }: Note): string {
  const marks = [
    new Date(createdAt).toISOString().slice(0, 10),
    ...(pinned ? ["pinned"] : []),
    ...(labels.includes("external") ? ["from outside"] : []),
  ];
  return `[${id}] (${marks.join(", ")}) ${words}`;
}

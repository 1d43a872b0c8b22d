import type { Label } from "../kernel/label.ts";
import type { ModelMessage } from "../kernel/model.ts";
import { labelsByRun } from "../records/journal/run-labels.ts";
import { journalBytes, readStepsOf, type Step } from "../records/journal/steps.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import { hasEntries, readTranscript, type SaidBefore } from "../records/sessions/transcript.ts";
import type { Reads } from "../store/engine.ts";
import { tokensOfMessages } from "./estimate.ts";
import { messagesOf, type ToldTurn } from "./request-of.ts";

export const READ_ENTRIES = 1_000;
/** What is read of calls: older turns are told by their words alone. */
export const JOURNAL_BYTES = 4_000_000;

/** A turn that has ended, as later ones are told of it. Nothing of it changes any more. */
export interface PastTurn extends ToldTurn {
  readonly run: string;
  /** What it has carried. */
  readonly labels: readonly Label[];
  readonly tokens: number;
}

/** Which turns: those of which something was said after one position, and up to another. */
export interface PastPart {
  readonly after: number;
  readonly upto: number;
  /** Where turns were summarised while they ran: in this one, steps before `before` are part of the summary. */
  readonly inside: { readonly run: string; readonly before: number } | null;
  /** Whether calls may be told as such. */
  readonly withTools: boolean;
}

export interface PastTurns {
  readonly turns: readonly PastTurn[];
  /** The position of the last thing said in them. */
  readonly upto: number;
  /** There are older ones that were not read. */
  readonly cut: boolean;
  /** How much was said in them, */
  readonly entries: number;
  readonly characters: number;
  /** and how much there is to read of what was done. */
  readonly journal: number;
}

/** The newest of them, as many as may be read at once. */
export async function readPastTurns(reads: Reads, run: RunInput, part: PastPart): Promise<PastTurns> {
  const { sessionKey, epoch } = run;
  const entries = await readTranscript(reads, sessionKey, epoch, READ_ENTRIES, part);
  if (entries.length === 0) return { turns: [], upto: 0, cut: false, entries: 0, characters: 0, journal: 0 };
  const said = [...Map.groupBy(entries, ({ turn }) => turn)];
  const runs = said.map(([id]) => id);
  const bytes = await journalBytes(reads, runs);
  const steps = await readStepsOf(reads, readable(runs, bytes));
  const labels = await labelsByRun(reads, runs);
  const turns = said.map(([id, words]): PastTurn => {
    const done = stepsAfter(steps.get(id), part.inside?.run === id ? part.inside.before : 0);
    const messages = messagesOfTurn(words, done, part.withTools);
    return {
      run: id,
      position: (words[0] as SaidBefore).position,
      messages,
      tokens: tokensOfMessages(messages),
      labels: labels.get(id) ?? [],
    };
  });
  const first = entries[0] as SaidBefore;
  return {
    turns,
    upto: (entries.at(-1) as SaidBefore).position,
    cut: first.position > part.after + 1 && (await hasEntries(reads, sessionKey, epoch, part.after, first.position)),
    entries: entries.length,
    characters: entries.reduce((sum, { text }) => sum + text.length, 0),
    journal: [...bytes.values()].reduce((sum, one) => sum + one, 0),
  };
}

/** Of the newest, as many as may be read at once. */
function readable(runs: readonly string[], bytes: ReadonlyMap<string, number>): string[] {
  let left = JOURNAL_BYTES;
  return runs.toReversed().filter((run) => {
    left -= bytes.get(run) ?? 0;
    return left >= 0 && bytes.has(run);
  });
}

function stepsAfter(steps: readonly Step[] | undefined, before: number): readonly Step[] | null {
  return steps ? steps.filter((step) => step.step >= before || step.kind === "steered") : null;
}

/** What was said, and between the words what was done; of what calls have answered only the beginning. Null: the words alone. */
function messagesOfTurn(words: readonly SaidBefore[], steps: readonly Step[] | null, withTools: boolean): ModelMessage[] {
  const done = steps?.flatMap((step) => doneIn(step, withTools)) ?? null;
  const [first, ...later] = words.filter(({ role }) => role === "user");
  const answers = words.filter(({ role, text }) => role === "assistant" && text !== "");
  return [
    ...(first ? [userMessage(first)] : []),
    // What was said in between stands among what was done.
    ...(done ?? later.map(userMessage)),
    ...answers.map(({ text }): ModelMessage => ({ role: "assistant", text })),
  ];
}

/** An answer without calls is the turn's reply, which is among the words. */
function doneIn(step: Step, withTools: boolean): ModelMessage[] {
  // Mail was for the turn that it reached; it is no part of the conversation.
  if (step.kind === "steered") return messagesOf({ ...step, said: step.said.filter(({ run }) => run !== null) });
  if (step.kind !== "response" || step.response.calls.length === 0) return [];
  const [said, results] = messagesOf(step, true) as [ModelMessage & { role: "assistant" }, ModelMessage & { role: "tool" }];
  const { text, calls = [] } = said;
  if (withTools) return [{ role: "assistant", text, calls }, results];
  // Some providers take no calls where no tools are offered.
  const lines = calls.map(({ tool, args }, place) => `[called ${tool} with ${args}; it answered: ${results.results[place]?.text ?? ""}]`);
  return [{ role: "assistant", text: [...(text === "" ? [] : [text]), ...lines].join("\n") }];
}

/** Where several speak, each message says who does. */
export function userMessage({ text, speaker }: Pick<SaidBefore, "text" | "speaker">): ModelMessage & { readonly role: "user" } {
  return { role: "user", text: speaker === null ? text : `[${markOf(speaker)}] ${text}` };
}

/** An id of a platform, in which nothing can look like the end of the mark. */
function markOf(speaker: string): string {
  return speaker.replaceAll(/[^\p{L}\p{N}@._+-]/gu, "_").slice(0, 64);
}

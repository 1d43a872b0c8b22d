import type { ModelMessage } from "../kernel/model.ts";
import type { StoredContext } from "../records/journal/contexts.ts";
import { journalBytes, readStep, readStepsOf, type Step } from "../records/journal/steps.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import { hasEntries, readTranscript, type SaidBefore } from "../records/sessions/transcript.ts";
import type { Reads } from "../store/engine.ts";
import { tokensOfMessages } from "./estimate.ts";
import { messagesOf, type ToldTurn } from "./request-of.ts";

const READ_ENTRIES = 1_000;
/** What is read of calls: older turns are told by their words alone. */
const JOURNAL_BYTES = 4_000_000;

/** The conversation before a turn. */
export interface History {
  readonly summary: string | null;
  readonly omitted: boolean;
  readonly turns: readonly ToldTurn[];
  /** The runs it tells of. */
  readonly runs: readonly string[];
}

/** Where it begins and ends, so that whoever takes the turn up again tells the same. */
export type HistoryBounds = Pick<StoredContext, "after" | "upto" | "summary" | "omitted">;

export const NO_HISTORY: History = { summary: null, omitted: false, turns: [], runs: [] };

/** The newest part of the conversation that has room, from the last summary on; and its bounds. */
export async function newestHistory(
  reads: Reads,
  run: RunInput,
  summary: NonNullable<StoredContext["summary"]> | null,
  withTools: boolean,
  room: number,
): Promise<{ readonly history: History; readonly bounds: HistoryBounds }> {
  const start = await startOf(reads, run, summary);
  const whole = await historyIn(reads, run, { after: start.after, upto: Number.MAX_SAFE_INTEGER }, start, withTools);
  let left = room;
  // The newest in any case: what does not fit then is the model's to refuse.
  const kept = whole.turns.toReversed().filter(({ messages }, index) => {
    left -= tokensOfMessages(messages);
    return index === 0 || left >= 0;
  });
  const turns = kept.toReversed();
  const first = turns[0]?.position ?? start.after + 1;
  const omitted = whole.cut || turns.length < whole.turns.length;
  const bounds = { after: first - 1, upto: whole.upto, summary, omitted };
  const runs = whole.runs.slice(whole.runs.length - turns.length);
  return { history: { summary: start.text, omitted, turns, runs }, bounds };
}

/** The same again, by the bounds that were kept. */
export async function historyOf(reads: Reads, run: RunInput, context: Pick<StoredContext, "tools"> & HistoryBounds): Promise<History> {
  const { after, upto = 0, summary = null, omitted = false } = context;
  if (run.request?.messages || (upto === 0 && summary === null)) return NO_HISTORY;
  const start = await startOf(reads, run, summary);
  const { turns, runs } = await historyIn(reads, run, { after, upto }, start, context.tools.length > 0);
  return { summary: start.text, omitted, turns, runs };
}

export function boundsOf({ after, upto, summary, omitted }: StoredContext): HistoryBounds {
  return {
    after,
    ...(upto === undefined ? {} : { upto }),
    ...(summary === undefined ? {} : { summary }),
    ...(omitted === undefined ? {} : { omitted }),
  };
}

interface Start {
  readonly text: string | null;
  readonly after: number;
  /** In the turn that was summarised while it ran, steps before this one are part of the summary. */
  readonly inside: { readonly run: string; readonly before: number } | null;
}

async function startOf(reads: Reads, run: RunInput, summary: StoredContext["summary"]): Promise<Start> {
  const step = summary ? await readStep(reads, summary.run, summary.step) : undefined;
  if (!summary || step?.kind !== "compacted") return { text: null, after: 0, inside: null };
  const { summary: text, from, before } = step.compaction;
  const after = (from ?? (await firstPosition(reads, run, summary.run))) - 1;
  return { text, after, inside: { run: summary.run, before } };
}

/** Of what was said in a turn. */
async function firstPosition(reads: Reads, { sessionKey, epoch }: RunInput, run: string): Promise<number> {
  const row = await reads.get<{ position: number | null }>`select min(position) as position from transcript
    where session_key = ${sessionKey} and epoch = ${epoch} and run_id = ${run}`;
  return row?.position ?? 1;
}

async function historyIn(
  reads: Reads,
  { sessionKey, epoch }: RunInput,
  part: { readonly after: number; readonly upto: number },
  { inside }: Start,
  withTools: boolean,
): Promise<{ readonly turns: ToldTurn[]; readonly runs: string[]; readonly upto: number; readonly cut: boolean }> {
  const entries = await readTranscript(reads, sessionKey, epoch, READ_ENTRIES, part);
  if (entries.length === 0) return { turns: [], runs: [], upto: 0, cut: false };
  const said = [...Map.groupBy(entries, ({ turn }) => turn)];
  const steps = await stepsOf(
    reads,
    said.map(([run]) => run),
  );
  const turns = said.map(([run, words]) => ({
    position: (words[0] as SaidBefore).position,
    messages: messagesOfTurn(words, stepsAfter(steps.get(run), inside?.run === run ? inside.before : 0), withTools),
  }));
  const first = entries[0] as SaidBefore;
  const cut = first.position > part.after + 1 && (await hasEntries(reads, sessionKey, epoch, part.after, first.position));
  return { turns, runs: said.map(([run]) => run), upto: (entries.at(-1) as SaidBefore).position, cut };
}

/** Of the newest, as many as may be read at once. */
async function stepsOf(reads: Reads, runs: readonly string[]): Promise<Map<string, Step[]>> {
  const bytes = await journalBytes(reads, runs);
  let left = JOURNAL_BYTES;
  const newest = runs.toReversed().filter((run) => {
    left -= bytes.get(run) ?? 0;
    return left >= 0 && bytes.has(run);
  });
  return readStepsOf(reads, newest);
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

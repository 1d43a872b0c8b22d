import type { TurnJournal } from "../acts/turn-journal.ts";
import type { Label } from "../kernel/label.ts";
import type { Model, ModelMessage, ModelPrice, ModelRequest } from "../kernel/model.ts";
import type { Compaction, Step } from "../records/journal/steps.ts";
import { askModel, requestHashOf } from "./ask-model.ts";
import { roomOf, tokensOfMessages, tokensOfRequest } from "./estimate.ts";
import { compactionOf, messagesOf, type Opening, requestOf } from "./request-of.ts";
import { SHORT_RESULT } from "./shorten.ts";
import { summaryRequest } from "./summarise.ts";

export interface CompactionParts {
  readonly model: Model;
  readonly opening: Opening;
  readonly journal: TurnJournal;
  readonly labels: ReadonlySet<Label>;
  readonly signal: AbortSignal;
  /** Somebody wants it, whether there is room or not. */
  readonly wanted: boolean;
  priceOf(name: string): ModelPrice | null;
  /** Answers the request with an answer no longer than can be paid for. */
  reserve(step: number, request: ModelRequest): Promise<ModelRequest>;
}

/** More turns than this, and it is time for a summary, however short they are. */
const MANY_TURNS = 200;
/** So many of the newest answers stay as they are. */
const KEPT_ANSWERS = 3;
/** Of the room, what the newest turns before this one may have beside a summary. */
const KEPT_HISTORY = 0.2;
/** Below this share of the room there is nothing to gain. */
const WORTH_IT = 0.1;
/** After results were shortened, so much of the room must be free for a while. */
const FREE_AGAIN = 0.75;
const LEFT_OUT = "An older part of this conversation is left out here: it had become too long, and it could not be summarised.";

/** Makes room before the model is asked: long results are cut first, then the model summarises what is oldest. Answers the steps it has added. */
export async function makeRoom(parts: CompactionParts, steps: readonly Step[]): Promise<readonly Step[]> {
  const { model, opening } = parts;
  const room = Math.floor(roomOf(model, opening.settings?.maxOutputTokens) / correctionOf(opening, steps));
  const now = compactionOf(steps);
  const isFirst = steps.length === 0;
  const wanted = isFirst && (parts.wanted || opening.history.length > MANY_TURNS);
  if (!wanted && tokensOfRequest(requestOf(opening, steps)) <= room) return [];
  const before = now?.shortened ?? 0;
  const older = shortOnly(Math.max(before, keptFrom(steps, KEPT_ANSWERS)));
  if (!wanted && older.shortened > before && sizeWith(opening, steps, older) <= room * FREE_AGAIN) return record(parts, steps, older);
  const cut = cutOf(opening, steps, room, wanted);
  // As a last resort also what was answered just now.
  const all = shortOnly(nextStep(steps));
  if (cut === null) return all.shortened > before && hasLongResults(steps, before) ? record(parts, steps, all) : [];
  const made = { ...(await summarised(parts, nextStep(steps), cut, room)), from: cut.from, before: cut.before };
  const fits = sizeWith(opening, steps, { ...made, shortened: older.shortened }) <= room;
  return record(parts, steps, { ...made, shortened: fits ? older.shortened : all.shortened });
}

function shortOnly(shortened: number): Compaction {
  return { summary: null, from: null, before: 0, shortened, by: null };
}

function hasLongResults(steps: readonly Step[], shortened: number): boolean {
  const results = steps.flatMap((step) => (step.kind === "response" && step.step >= shortened ? step.calls : []));
  return results.some(({ result }) => result !== null && (result.text.length > SHORT_RESULT || result.images !== undefined));
}

/** The same request again, from what was recorded of it. */
export function summaryRequestOf(opening: Opening, steps: readonly Step[], { from, before, by }: Compaction): ModelRequest {
  const { older, covered } = coveredBy(opening, steps, from, before);
  return summaryRequest(older, covered, by?.room ?? 0, opening.cacheKey);
}

interface Cut {
  readonly from: number | null;
  readonly before: number;
  /** A summary that goes into the new one. */
  readonly older: string | null;
  readonly covered: readonly ModelMessage[];
}

/** What is summarised: at first some of the newest stays, then less and less; null: there is nothing that would be worth it. */
function cutOf(opening: Opening, steps: readonly Step[], room: number, wanted: boolean): Cut | null {
  const now = compactionOf(steps);
  const tries = [
    { answers: KEPT_ANSWERS, share: wanted ? 0 : KEPT_HISTORY },
    { answers: KEPT_ANSWERS, share: 0 },
    { answers: 1, share: 0 },
  ];
  for (const { answers, share } of tries) {
    const from = fromPosition(opening, Math.floor(room * share), now);
    const before = Math.max(now?.before ?? 0, keptFrom(steps, answers));
    const cut = coveredBy(opening, steps, from, before);
    const gain = tokensOfMessages(cut.covered);
    if (wanted ? gain > 0 : gain >= room * WORTH_IT) return cut;
  }
  return null;
}

/** The number of the step from which the newest answers begin. */
function keptFrom(steps: readonly Step[], answers: number): number {
  const made = steps.filter(({ kind }) => kind === "response");
  return made.length <= answers ? 0 : (made.at(-answers)?.step ?? 0);
}

/** Where the newest turns begin that have so much room together; null: none. Never farther back than a summary that is there already. */
function fromPosition({ history }: Opening, room: number, now: Compaction | null): number | null {
  const least = now === null || now.summary === null ? 0 : (now.from ?? Number.POSITIVE_INFINITY);
  let left = room;
  const kept = history.toReversed().filter(({ position, messages }) => {
    left -= tokensOfMessages(messages);
    return left >= 0 && position >= least;
  });
  return kept.at(-1)?.position ?? null;
}

function coveredBy(opening: Opening, steps: readonly Step[], from: number | null, before: number): Cut {
  const now = compactionOf(steps);
  const isSummarised = now !== null && now.summary !== null;
  const least = isSummarised ? (now.from ?? Number.POSITIVE_INFINITY) : 0;
  const told = opening.history.filter(({ position }) => position >= least && position < (from ?? Number.POSITIVE_INFINITY));
  const done = steps.filter((step) => step.kind === "response" && step.step >= (isSummarised ? now.before : 0) && step.step < before);
  const covered = [...told.flatMap(({ messages }) => messages), ...done.flatMap((step) => messagesOf(step))];
  return { from, before, older: isSummarised ? now.summary : opening.summary, covered };
}

/** One that fails must not end the turn: then what came before is left out, and the model is told so. */
async function summarised(
  { model, opening, reserve, priceOf, signal }: CompactionParts,
  step: number,
  { older, covered }: Cut,
  room: number,
): Promise<Pick<Compaction, "summary" | "by">> {
  const request = summaryRequest(older, covered, room, opening.cacheKey);
  const paid = await reserve(step, request);
  try {
    const {
      text,
      usage,
      cost,
      requestHash,
      model: name,
    } = await askModel(
      model,
      paid,
      priceOf,
      () => {},
      signal,
      () => requestHashOf(request),
    );
    if (text.trim() !== "") return { summary: text.trim(), by: { model: name, usage, cost, requestHash, room } };
  } catch (error) {
    if (signal.aborted) throw error;
  }
  return { summary: [...(older === null ? [] : [older]), LEFT_OUT].join("\n\n"), by: null };
}

async function record({ journal, labels }: CompactionParts, steps: readonly Step[], compaction: Compaction): Promise<readonly Step[]> {
  const step = nextStep(steps);
  const { by, summary, from, before, shortened } = compaction;
  const told = {
    step,
    from,
    before,
    shortened,
    characters: summary?.length ?? 0,
    model: by?.model ?? null,
    usage: by?.usage ?? null,
    cost: by?.cost ?? null,
  };
  await journal.add("turn.compacted", step, async (tx) => {
    if (by) await journal.usageIn(tx, step, by);
    // It brings along whatever was brought by what it stands for.
    return { added: { kind: "compacted", body: compaction }, labels: [...labels], told };
  });
  return [{ kind: "compacted", step, compaction, labels: [...labels], at: 0 }];
}

function sizeWith(opening: Opening, steps: readonly Step[], compaction: Compaction): number {
  const added: Step = { kind: "compacted", step: nextStep(steps), compaction, labels: [], at: 0 };
  return tokensOfRequest(requestOf(opening, [...steps, added]));
}

function nextStep(steps: readonly Step[]): number {
  return (steps.at(-1)?.step ?? 0) + 1;
}

/** How far the estimate is below what the model itself has counted last. */
function correctionOf(opening: Opening, steps: readonly Step[]): number {
  const last = steps.findLastIndex(({ kind }) => kind === "response");
  const step = steps[last];
  if (step?.kind !== "response" || step.response.usage === null) return 1;
  const estimated = tokensOfRequest(requestOf(opening, steps.slice(0, last)));
  return Math.min(4, Math.max(1, step.response.usage.inputTokens / Math.max(1, estimated)));
}

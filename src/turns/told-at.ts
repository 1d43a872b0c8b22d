import { Failure } from "../kernel/failure.ts";
import type { ModelRequest } from "../kernel/model.ts";
import { readContext, type StoredContext } from "../records/journal/contexts.ts";
import { readSteps, type Step } from "../records/journal/steps.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import type { Reads } from "../store/engine.ts";
import { requestHashOf } from "./ask-model.ts";
import { summaryRequestOf } from "./compact.ts";
import { historyOf } from "./history.ts";
import { openingOf } from "./open-turn.ts";
import { askedRequest, type Opening } from "./request-of.ts";

/** What a model was asked at one step of a turn, made again from what was kept. */
export interface ToldAt {
  readonly step: number;
  readonly asked: "answer" | "summary" | "next";
  readonly model: string | null;
  readonly request: ModelRequest;
  /** Whether it has the hash that was recorded; null: none was. */
  readonly exact: boolean | null;
  readonly context: StoredContext;
  /** Those for which a model was asked. */
  readonly steps: readonly number[];
}

/** `at`: null is the last. Undefined: the turn has not begun. */
export async function toldAt(reads: Reads, run: RunInput, at: number | null): Promise<ToldAt | undefined> {
  const context = await readContext(reads, run.id);
  if (!context) return undefined;
  const opening = openingOf(context, await historyOf(reads, run, context), run);
  const steps = await readSteps(reads, run.id);
  const asked = steps.filter((step) => hashOf(step) !== null);
  const numbers = asked.map(({ step }) => step);
  if (at === null && asked.length === 0) {
    const request = askedRequest(opening, steps, 0, false);
    return { step: (steps.at(-1)?.step ?? 0) + 1, asked: "next", model: null, request, exact: null, context, steps: numbers };
  }
  const step = at === null ? asked.at(-1) : asked.find((one) => one.step === at);
  if (!step) throw new Failure("request.not_found", `no model was asked at step ${at}`, { details: { steps: numbers } });
  const before = steps.filter((one) => one.step < step.step);
  const hash = hashOf(step) as string;
  const requests = step.kind === "compacted" ? [summaryRequestOf(opening, before, step.compaction)] : answerRequests(opening, before);
  const found = requests.find((request) => requestHashOf(request) === hash);
  return {
    step: step.step,
    asked: step.kind === "compacted" ? "summary" : "answer",
    model: modelOf(step),
    request: found ?? (requests[0] as ModelRequest),
    exact: found !== undefined,
    context,
    steps: numbers,
  };
}

/** How many steps the turn might have had is not kept: the hash tells whether these were its last words. */
function answerRequests(opening: Opening, before: readonly Step[]): ModelRequest[] {
  const answers = before.filter(({ kind }) => kind === "response").length;
  return [askedRequest(opening, before, answers, false), askedRequest(opening, before, answers, true)];
}

function modelOf(step: Step): string | null {
  if (step.kind === "response") return step.response.model;
  return step.kind === "compacted" ? (step.compaction.by?.model ?? null) : null;
}

function hashOf(step: Step): string | null {
  if (step.kind === "response") return step.response.requestHash;
  return step.kind === "compacted" ? (step.compaction.by?.requestHash ?? null) : null;
}

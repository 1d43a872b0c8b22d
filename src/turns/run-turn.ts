import { type CallParts, type Settled, settleCall, type TurnOfCalls } from "../abilities/tools/settle-call.ts";
import type { TurnJournal } from "../acts/turn-journal.ts";
import type { AskedCall } from "../acts/wait-turn.ts";
import { Failure } from "../kernel/failure.ts";
import type { Model, ModelCall, ModelPrice, ModelRequest } from "../kernel/model.ts";
import type { CallRecord, CallResult } from "../records/journal/calls.ts";
import type { Response, Step } from "../records/journal/steps.ts";
import type { Lasts } from "../store/engine.ts";
import { askModel, type Emit } from "./ask-model.ts";
import { repetitionOf } from "./repetition.ts";
import { askedRequest, type Opening } from "./request-of.ts";

export interface Turn {
  readonly model: Model;
  readonly opening: Opening;
  /** What was done by attempts before this one. */
  readonly done: readonly Step[];
  readonly maxSteps: number;
  readonly journal: TurnJournal;
  readonly calls: TurnOfCalls;
  readonly callParts: CallParts;
  /** Tools of whoever asked: the turn ends with calls of them. */
  readonly callerTools: ReadonlySet<string>;
  readonly signal: AbortSignal;
  readonly emit: Emit;
  priceOf(name: string): ModelPrice | null;
  hashOf(request: ModelRequest): string;
  /** Before the model is asked: sets aside what it may cost. Answers the request with an answer no longer than can be paid for; throws `budget.exceeded`. */
  reserve(step: number, request: ModelRequest): Promise<ModelRequest>;
  /** Takes in what reached the turn since, and shortens what has become too long. Answers the steps it has added. */
  between(steps: readonly Step[]): Promise<readonly Step[]>;
}

export type TurnEnd =
  /** `last`: the answer that ends it, not recorded yet: its record and the end of the turn are one. */
  | {
      readonly kind: "answered";
      readonly text: string;
      readonly steps: readonly Step[];
      readonly last: Last | null;
      readonly calls: readonly ModelCall[];
    }
  /** For a person's word, for tasks, or for both. */
  | { readonly kind: "waits"; readonly asked: readonly AskedCall[]; readonly tasks: readonly string[] };

export interface Last {
  readonly step: number;
  readonly response: Response;
}

/**
 * The agent loop: ask, do what was asked for, ask again. It goes on from wherever an attempt before it has come: an answer that was recorded
 * is not asked for again, and a call with a result is not made again.
 */
export async function runTurn(turn: Turn): Promise<TurnEnd> {
  let steps = turn.done;
  for (;;) {
    const newest = steps.at(-1);
    if (newest?.kind === "response") {
      const outcome = await settleAll(turn, newest, steps);
      if (outcome.kind !== "goes on") return outcome;
      steps = [...steps.slice(0, -1), { ...newest, calls: outcome.calls }];
    }
    steps = [...steps, ...(await turn.between(steps))];
    const step = (steps.at(-1)?.step ?? 0) + 1;
    const response = await ask(turn, steps, step);
    if (response.calls.length === 0) return { kind: "answered", text: response.text, steps, last: { step, response }, calls: [] };
    await turn.journal.response(step, response, lastingOf(turn, response));
    steps = [...steps, { kind: "response", step, response, calls: [], labels: [], at: 0 }];
  }
}

async function ask(turn: Turn, steps: readonly Step[], step: number): Promise<Response> {
  const asked = steps.filter(({ kind }) => kind === "response").length;
  const isLast = asked >= turn.maxSteps;
  const whole = askedRequest(turn.opening, steps, asked, isLast);
  const paid = await turn.reserve(step, whole);
  const response = await askModel(turn.model, paid, turn.priceOf, turn.emit, turn.signal, () => turn.hashOf(whole));
  if (!isLast || response.calls.length === 0) return response;
  // It has been paid for.
  await turn.journal.response(step, response, "at once");
  throw new Failure("turn.too_many_steps", `the turn did not end within ${turn.maxSteps} steps`);
}

/** An answer that has gone with the power is asked for again: what only looks around may then have been done for another one. */
function lastingOf({ calls, callerTools }: Turn, response: Response): Lasts {
  const isPure = ({ tool }: ModelCall): boolean => !callerTools.has(tool) && calls.tools.get(tool)?.effect === "pure";
  return response.calls.every(isPure) ? "with others" : "at once";
}

type Outcome = TurnEnd | { readonly kind: "goes on"; readonly calls: readonly CallRecord[] };

/**
 * Makes the calls of an answer. Those that change nothing run side by side, the others one after another, in the order of the answer. After
 * one that waits for a person only those are made for which a person has given his word. One that waits for tasks keeps none of the others
 * from being made: several of an answer wait together.
 */
async function settleAll(turn: Turn, step: Step & { readonly kind: "response" }, steps: readonly Step[]): Promise<Outcome> {
  const { calls } = step.response;
  const results: (Settled | null)[] = calls.map(() => null);
  const callers = calls.filter(({ tool }) => turn.callerTools.has(tool));
  let together: Promise<void>[] = [];
  let held = false;
  for (const [place, call] of calls.entries()) {
    if (turn.callerTools.has(call.tool)) continue;
    const record = step.calls.find((each) => each.place === place);
    const one = async (): Promise<void> => {
      results[place] = await settleOne(turn, step, place, call, record, steps, held);
    };
    if (turn.calls.tools.get(call.tool)?.effect === "pure") together.push(one());
    else {
      await Promise.all(together);
      together = [];
      await one();
      held ||= results[place]?.kind === "asks";
    }
  }
  await Promise.all(together);
  turn.signal.throwIfAborted();
  const asked = results.flatMap((result) => (result?.kind === "asks" ? [result.asked] : []));
  const tasks = results.flatMap((result) => (result?.kind === "waits" ? result.tasks : []));
  if (asked.length > 0 || tasks.length > 0) return { kind: "waits", asked, tasks };
  const ended = results.find((result) => result?.kind === "settled" && result.result.ends !== undefined);
  const text = ended?.kind === "settled" ? (ended.result.ends as string) : step.response.text;
  if (ended || callers.length > 0) return { kind: "answered", text, steps, last: null, calls: callers };
  return { kind: "goes on", calls: results.map((result, place) => recordOf(turn, step, place, result)) };
}

async function settleOne(
  turn: Turn,
  { step, response }: Step & { readonly kind: "response" },
  place: number,
  call: ModelCall,
  record: CallRecord | undefined,
  steps: readonly Step[],
  held: boolean,
): Promise<Settled> {
  const mayRepeat = record?.result || turn.calls.tools.get(call.tool)?.polls;
  const repetition = mayRepeat ? "fine" : repetitionOf(call, steps);
  if (repetition === "stopped") throw new Failure("turn.repeating", `the model made the same call of ${call.tool} again and again`);
  const { emit } = turn;
  if (!record?.result && !held) emit({ kind: "call", place, tool: call.tool, args: short(turn.callParts.redaction.text(call.args)) });
  const began = turn.callParts.clock.now();
  const isHalf = response.cut === true && place === response.calls.length - 1;
  const refusal = isHalf ? half(call) : repetition === "told" ? repeated(call) : null;
  const settled = await settleCall(turn.callParts, turn.calls, step, place, call, record, { refusal, held });
  if (settled.kind === "settled" && !record?.result)
    emit({
      kind: "called",
      place,
      tool: call.tool,
      failed: settled.result.failed,
      ms: turn.callParts.clock.now() - began,
      note: short(settled.result.text),
    });
  return settled;
}

function repeated({ tool }: ModelCall): Failure {
  return new Failure("turn.repeating", `you have made this very call of ${tool} several times in a row; it is not made again`, {
    hint: "Use what it answered, or do something else.",
  });
}

/** Its arguments may have had more to say, also where there are none yet. */
function half({ tool }: ModelCall): Failure {
  return new Failure("tool.bad_arguments", `your answer reached its limit and was cut in this call of ${tool}; it is not made`, {
    hint: "Make it again, with less in it.",
  });
}

/** For the next request: only what the model reads of it counts there. */
function recordOf(
  turn: Turn,
  { step, response }: Step & { readonly kind: "response" },
  place: number,
  settled: Settled | null,
): CallRecord {
  const call = response.calls[place] as ModelCall;
  const result: CallResult = settled?.kind === "settled" ? settled.result : { text: "not made", failed: true };
  return {
    runId: turn.calls.run.id,
    step,
    place,
    callId: call.id,
    tool: call.tool,
    args: call.args,
    effect: "pure",
    state: "done",
    result,
    labels: [],
    approval: null,
    startedAt: 0,
    endedAt: 0,
  };
}

const SHORT = 120;
function short(text: string): string {
  const line = text
    .slice(0, 4 * SHORT)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= SHORT ? line : `${line.slice(0, SHORT).toWellFormed()}…`;
}

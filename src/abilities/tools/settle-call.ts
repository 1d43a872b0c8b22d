import type { CallEnd, CallWaits, TurnJournal } from "../../acts/turn-journal.ts";
import type { AskedCall } from "../../acts/wait-turn.ts";
import { mayCall } from "../../deciders/policy/may-call.ts";
import type { Policy } from "../../deciders/policy/policy.ts";
import { canonicalJson } from "../../kernel/canonical-json.ts";
import type { Clock } from "../../kernel/clock.ts";
import { asFailure, Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import type { ModelCall } from "../../kernel/model.ts";
import type { Redaction } from "../../kernel/redact.ts";
import { callHash } from "../../records/access/approvals.ts";
import type { CallRecord, CallResult, NewCall } from "../../records/journal/calls.ts";
import { inWords } from "./in-words.ts";
import { labelRule } from "./label-rule.ts";
import { made, within } from "./make-call.ts";
import { bearableImages, type Spill, shownOutput } from "./output.ts";
import type { CallContext, Tool, ToolOutcome } from "./tool.ts";

export interface CallParts {
  readonly clock: Clock;
  readonly redaction: Redaction;
  /** The rules of the moment. */
  readonly policy: () => Policy;
  readonly spill: Spill;
}

/** What calls of one turn have in common. */
export type TurnOfCalls = Omit<CallContext, "key" | "caller" | "progress" | "labels" | "work" | "cause"> & {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly journal: TurnJournal;
  /** Of the turn so far; what calls bring is added. */
  readonly labels: Set<Label>;
  /** Where paths are meant from, for the rules. */
  readonly workspace: string | undefined;
  progress(call: Pick<NewCall, "place" | "tool">, text: string): void;
};

export type Settled =
  | { readonly kind: "settled"; readonly result: CallResult }
  | { readonly kind: "asks"; readonly asked: AskedCall }
  /** It may be made, and waits for one before it. */
  | { readonly kind: "held" }
  /** It was made, and ends with these tasks. */
  | { readonly kind: "waits"; readonly tasks: readonly string[] };

/** What the answer around a call says of it. */
export interface AmongCalls {
  /** Why it is not made, whatever the rules say. */
  readonly refusal: Failure | null;
  /** One before it waits for a person. */
  readonly held: boolean;
}

/**
 * The one way a tool is run: the rules of the moment, a person's word where it is needed, the record before and after, the output bounded and
 * without secrets. What was recorded already is not done again. A refusal is a result like any other: the model reads it and goes on.
 */
export async function settleCall(
  parts: CallParts,
  turn: TurnOfCalls,
  step: number,
  place: number,
  asked: ModelCall,
  record: CallRecord | undefined,
  { refusal: given, held }: AmongCalls = { refusal: null, held: false },
): Promise<Settled> {
  if (record?.result) return settled(turn, record.result, record.labels);
  const args = parsedArguments(asked.args);
  const decision = mayCall({
    grant: turn.grant,
    current: parts.policy(),
    tool: asked.tool,
    args: args.value,
    ...(turn.workspace === undefined ? {} : { workspace: turn.workspace }),
  });
  const tool = decision.tool === null ? undefined : turn.tools.get(decision.tool);
  const call: NewCall = {
    runId: turn.run.id,
    step,
    place,
    callId: asked.id,
    tool: decision.tool ?? String(asked.tool).slice(0, 200),
    args: canonicalJson(parts.redaction.value(args.value ?? null)),
    effect: record?.effect ?? tool?.effect ?? "pure",
  };
  // Made, whatever the rules say by now: what came of its tasks is told.
  if (record?.state === "waiting")
    return gathered(parts, turn, turn.tools.get(record.tool), { ...call, tool: record.tool }, args.value, record.tasks ?? []);
  // Begun by an attempt that did not live to see its end.
  if (record?.state === "intended" && record.effect === "unsafe") return outcomeUnknown(turn, call);
  // What was begun and may not be made again may have happened all the same.
  const refuse = (failure: Failure) => (record?.state === "intended" ? outcomeUnknown(turn, call) : refused(turn, call, failure));
  const refusal = given ?? refusalOf(asked, args, decision, tool);
  if (refusal || !tool) return refuse(refusal ?? new Failure("tool.unknown", `there is no tool "${call.tool}"`));
  let checked: unknown;
  try {
    checked = tool.parse(args.value);
  } catch (error) {
    return refuse(asFailure(error));
  }
  const context = contextOf(turn, call);
  try {
    for (const label of (await tool.prepare?.(checked, context)) ?? []) turn.labels.add(label);
  } catch (error) {
    return refuse(asFailure(error));
  }
  const rule = labelRule(tool, context, checked);
  const needsPerson = decision.verdict === "ask" || rule !== null;
  if (held && !needsPerson) return { kind: "held" };
  if (needsPerson && record?.state === "intended" && record.approval === null) return outcomeUnknown(turn, call);
  // An approval is bound to what will really be done; a call that was begun with one has spent it.
  if (needsPerson && record?.state !== "intended") {
    const bound = await tool.boundTo?.(checked, context);
    const shownArgs = parts.redaction.value({ ...(args.value as object), ...(bound === undefined ? {} : { bound_to: bound }) });
    if (!record?.approval) return { kind: "asks", asked: { call, args: shownArgs, asked: null } };
    const spent = await turn.journal.intendApproved(
      call,
      record.approval,
      callHash({ agent: turn.run.agent, tool: call.tool, args: shownArgs }),
    );
    if (spent === "not approved") return { kind: "asks", asked: { call, args: shownArgs, asked: record.approval } };
    if (spent !== "used")
      return refused(turn, call, new Failure("tool.denied", `${call.tool} needs a person's approval, and it is ${spent}`, { hint: "" }));
  }
  return make(parts, turn, tool, call, checked, context, needsPerson);
}

async function make(
  parts: CallParts,
  turn: TurnOfCalls,
  tool: Tool,
  call: NewCall,
  args: unknown,
  context: CallContext,
  intended: boolean,
): Promise<Settled> {
  const began = parts.clock.now();
  const took = (): number => Math.round(parts.clock.now() - began);
  const { runIn } = tool;
  if (runIn) {
    const end = await within<CallEnd | CallWaits>(
      (body) => turn.journal.settleWithin(call, took, body),
      // Nothing slow inside a transaction: what is too long is cut.
      async (tx) => {
        const outcome = await runIn(tx, args, context);
        return isWaiting(outcome) ? outcome : endOf(parts, context, outcome, noSpill);
      },
      (failure) => endOf(parts, context, outcomeOf(failure), noSpill),
      async (end) => {
        if (!("waitsFor" in end)) await turn.journal.settle(call, end, took());
        return end;
      },
    );
    return "waitsFor" in end ? gathered(parts, turn, tool, call, args, end.waitsFor) : settled(turn, end.result, end.labels);
  }
  if (tool.effect !== "pure" && !intended) await turn.journal.intend(call);
  const told = parts.redaction.stream((text) => turn.progress(call, text));
  let runs = true;
  const progress = (text: string): void => {
    if (runs) told.push(String(text));
  };
  const outcome = await made(tool, args, { ...context, progress }).finally(() => {
    runs = false;
    told.end();
  });
  const end = await endOf(parts, context, outcome, parts.spill);
  await turn.journal.settle(call, end, took());
  return settled(turn, end.result, end.labels);
}

/** What came of the tasks that a call has opened, once all of them are over. */
async function gathered(
  parts: CallParts,
  turn: TurnOfCalls,
  tool: Tool | undefined,
  call: NewCall,
  args: unknown,
  tasks: readonly string[],
): Promise<Settled> {
  const context = contextOf(turn, call);
  const outcome = tool?.collect
    ? await tool.collect(tasks, args, context)
    : { output: `${call.tool} is not there any more; ask task_check about ${tasks.join(", ")}`, failed: true };
  if (!outcome) return { kind: "waits", tasks };
  const end = await endOf(parts, context, outcome, parts.spill);
  await turn.journal.settle(call, end, 0);
  return settled(turn, end.result, end.labels);
}

async function endOf(parts: CallParts, context: CallContext, made: ToolOutcome, spill: Spill): Promise<CallEnd> {
  // A program's tool may answer anything.
  const outcome: ToolOutcome = typeof made === "object" && made !== null ? made : { output: made };
  const text = await shownOutput(outcome.output, parts.redaction, (whole) => spill(context, whole));
  const images = bearableImages(outcome.images ?? []);
  return {
    result: {
      text,
      failed: outcome.failed ?? false,
      ...(images.length > 0 ? { images } : {}),
      ...(outcome.ends === undefined ? {} : { ends: parts.redaction.text(outcome.ends) }),
    },
    ...(outcome.labels ? { labels: outcome.labels } : {}),
    ...(outcome.told ? { told: parts.redaction.value(outcome.told) } : {}),
  };
}

function isWaiting(made: ToolOutcome | CallWaits): made is CallWaits {
  return typeof made === "object" && made !== null && "waitsFor" in made;
}

const noSpill: Spill = async () => null;

function contextOf(turn: TurnOfCalls, call: NewCall): CallContext {
  const { run, task, agent, revision, grant, labels, signal } = turn;
  const key = `${call.runId}.${call.step}.${call.place}`;
  return {
    run,
    task,
    agent,
    revision,
    grant,
    labels,
    signal,
    key,
    work: turn.journal.work,
    cause: turn.journal.cause,
    caller: {
      kind: "agent",
      name: agent.id,
      roles: agent.roles,
      run: run.id,
      step: task?.step ?? null,
      call: key,
      pool: task?.spec.scope?.pool,
    },
    progress: () => {},
  };
}

function settled(turn: TurnOfCalls, result: CallResult, labels: readonly Label[] = []): Settled {
  for (const label of labels) turn.labels.add(label);
  return { kind: "settled", result };
}

async function refused(turn: TurnOfCalls, call: NewCall, failure: Failure): Promise<Settled> {
  const result: CallResult = { text: inWords(failure), failed: true };
  await turn.journal.refuse(call, failure.code, result);
  return { kind: "settled", result };
}

async function outcomeUnknown(turn: TurnOfCalls, call: NewCall): Promise<Settled> {
  const text = `outcome unknown: ${call.tool} was begun, and the gateway was interrupted before its end was seen. It may have happened. It is not made again by itself: look first, and tell the user.`;
  const result: CallResult = { text, failed: true };
  await turn.journal.giveUp(call, result);
  return { kind: "settled", result };
}

function outcomeOf(failure: Failure): ToolOutcome {
  return { output: inWords(failure), failed: true };
}

type Arguments = { readonly value: unknown; readonly problem: string | null };

/** Models write JSON, or something like it. Nothing at all means no arguments. */
function parsedArguments(text: string): Arguments {
  if (text.trim() === "") return { value: {}, problem: null };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value, problem: null };
    return { value: {}, problem: "the arguments are not a JSON object" };
  } catch (error) {
    return { value: {}, problem: `the arguments are not JSON: ${(error as Error).message}` };
  }
}

function refusalOf(asked: ModelCall, args: Arguments, decision: ReturnType<typeof mayCall>, tool: Tool | undefined): Failure | null {
  if (decision.tool === null) return new Failure("tool.unknown", decision.because);
  // With arguments that cannot be read, a rule about arguments has nothing to say.
  if (decision.verdict === "deny") return new Failure("tool.denied", decision.because, { hint: "" });
  if (!tool) return new Failure("tool.unavailable", `${asked.tool} is not there at the moment`);
  return args.problem === null ? null : new Failure("tool.bad_arguments", `${decision.tool}: ${args.problem}`);
}

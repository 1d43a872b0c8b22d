import { z } from "zod";
import type { CallWaits } from "../../acts/turn-journal.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import type { Image } from "../../kernel/model.ts";
import { Offer } from "../../kernel/tool-offer.ts";
import type { Agent } from "../../records/agents/agent.ts";
import type { Revision } from "../../records/agents/revision.ts";
import type { RunInput } from "../../records/sessions/runs.ts";
import type { StoredTask } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";

/**
 * What becomes of a call that was begun and whose end nobody has seen.
 * `pure`: it changes nothing outside, and is made again. `keyed`: it is made again with the same key, and happens once.
 * `unsafe`: nobody can know; it is never made again, and the agent and the operator are told so.
 */
export type Effect = "pure" | "keyed" | "unsafe";

/** What a tool may know of the call it serves. */
export interface CallContext {
  readonly run: RunInput;
  /** What the turn is a turn of; null: of a conversation. */
  readonly task: StoredTask | null;
  readonly agent: Agent;
  /** The config that the turn began with. Rights are not read from here: they are decided before the call, by the rules of the moment. */
  readonly revision: Revision;
  readonly grant: Grant;
  /** As whom records are used: this agent, in this run and this call. */
  readonly caller: Caller;
  /** The same whenever this call is made again, and no other call's. */
  readonly key: string;
  /** The turn's row in the work queue, for whatever is to wake it. */
  readonly work: number;
  /** The event that what the call does follows from. */
  readonly cause: number;
  /** What the turn carries so far. */
  readonly labels: ReadonlySet<Label>;
  /** Aborts when the call takes too long, or the turn is stopped or lost. Whatever runs must end soon after. */
  readonly signal: AbortSignal;
  /** Output of a call that still runs, for whoever watches. Nothing is stored. */
  progress(text: string): void;
}

export interface ToolOutcome {
  /** What the model reads: text, or a value that is shown as JSON. */
  readonly output: unknown;
  readonly images?: readonly Image[];
  /** The call was made, and what came of it is a refusal or an error. */
  readonly failed?: boolean;
  /** What the turn carries from now on. */
  readonly labels?: readonly Label[];
  /** For the event of the call: a diff, an exit code. Small, and without secrets. */
  readonly told?: Readonly<Record<string, unknown>>;
  /** The turn ends with this as its reply. */
  readonly ends?: string;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, for models. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The same as a model is told of it, made once. */
  readonly offer?: Offer;
  readonly effect: Effect;
  readonly timeoutMs: number;
  /** Asking again is how it is used: the same call many times in a row is no sign of a model that goes round in circles. */
  readonly polls?: boolean;
  /** It acts on the world outside the house or for good: with `external` in the turn a person is asked first. */
  readonly consequential: boolean | ((context: Pick<CallContext, "agent" | "revision">, args: unknown) => boolean);
  /** It can carry words out of the house: with `secret` in the turn a person is asked first. */
  readonly egress: boolean | ((context: Pick<CallContext, "agent" | "revision">, args: unknown) => boolean);
  /** What else an approval of a call is bound to: the content of the program it starts, the folder it starts in. */
  boundTo?(args: unknown, context: CallContext): Promise<unknown>;
  /** Checked arguments, or `tool.bad_arguments`, which says what was expected. */
  parse(args: unknown): unknown;
  /**
   * Before the transaction of `runIn`: loads and checks what takes a while. What it throws is told to the model. Answers what the turn
   * carries from now on, so that a person is asked about the call itself where the rules want it.
   */
  prepare?(args: unknown, context: CallContext): Promise<readonly Label[]>;
  /** Does it. What it throws is told to the model as the outcome; only a broken store or a lost turn ends the turn. */
  run?(args: unknown, context: CallContext): Promise<ToolOutcome>;
  /**
   * Instead of `run`, for what happens in our own store: its effect and the record that it is done are one transaction, so that
   * it happens exactly once. May be called more than once; only reads and writes through `tx`.
   */
  runIn?(tx: Tx, args: unknown, context: CallContext): Promise<ToolOutcome | CallWaits>;
  /** What came of the tasks that `runIn` has opened; null: not all of them are over. Only looks. The arguments are as the model wrote them. */
  collect?(tasks: readonly string[], args: unknown, context: CallContext): Promise<ToolOutcome | null>;
}

/** Gives the tools that there are for an agent, beside those that everybody has. */
export interface ToolSource {
  toolsOf(agent: Agent, revision: Revision, signal: AbortSignal): Promise<readonly Tool[]>;
}

const DEFAULT_TIMEOUT_MS = 60_000;

interface Common<Schema extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly parameters: Schema;
  readonly effect: Effect;
  readonly timeoutMs?: number;
  readonly consequential?: Tool["consequential"];
  readonly egress?: Tool["egress"];
  readonly polls?: boolean;
  boundTo?(args: z.output<Schema>, context: CallContext): Promise<unknown>;
}

export type ToolDefinition<Schema extends z.ZodObject> = Common<Schema> &
  (
    | { run(args: z.output<Schema>, context: CallContext): Promise<ToolOutcome> | ToolOutcome; runIn?: undefined }
    | {
        runIn(tx: Tx, args: z.output<Schema>, context: CallContext): Promise<ToolOutcome | CallWaits>;
        collect?(tasks: readonly string[], args: unknown, context: CallContext): Promise<ToolOutcome | null>;
        prepare?(args: z.output<Schema>, context: CallContext): Promise<readonly Label[]>;
        run?: undefined;
      }
  );

/** A tool from a schema and a function. */
export function defineTool<Schema extends z.ZodObject>(definition: ToolDefinition<Schema>): Tool {
  const { name, description, parameters, effect } = definition;
  let offered: Record<string, unknown> | undefined;
  let offer: Offer | undefined;
  const run = definition.run;
  const runIn = definition.runIn;
  const { collect, prepare } = definition.runIn ? definition : {};
  return {
    name,
    description,
    // Made when it is first asked for: for all tools together it takes a while.
    get parameters() {
      offered ??= offeredSchema(parameters);
      return offered;
    },
    get offer() {
      offer ??= new Offer({ name, description, parameters: this.parameters });
      return offer;
    },
    effect,
    timeoutMs: definition.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    consequential: definition.consequential ?? false,
    egress: definition.egress ?? false,
    polls: definition.polls ?? false,
    parse: (args) => parsed(name, parameters, args),
    ...(definition.boundTo ? { boundTo: definition.boundTo as NonNullable<Tool["boundTo"]> } : {}),
    ...(run ? { run: async (args, context) => run(args as z.output<Schema>, context) } : {}),
    ...(runIn ? { runIn: (tx, args, context) => runIn(tx, args as z.output<Schema>, context) } : {}),
    ...(collect ? { collect } : {}),
    ...(prepare ? { prepare: (args, context) => prepare(args as z.output<Schema>, context) } : {}),
  };
}

function offeredSchema(parameters: z.ZodObject): Record<string, unknown> {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(parameters, { io: "input", target: "draft-2020-12" }) as Record<string, unknown>;
  return schema;
}

function parsed(name: string, schema: z.ZodObject, args: unknown): unknown {
  const written = schema.safeParse(args);
  const result = written.success ? written : schema.safeParse(withoutNulls(args));
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, 5).map(({ path, message }) => `${path.join(".") || "arguments"}: ${message}`);
  throw new Failure("tool.bad_arguments", `${name}: ${problems.join("; ")}`);
}

/** Models write null for what they leave out. */
function withoutNulls(args: unknown): unknown {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return args;
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
}

import type { z } from "zod";
import type { Caller, CallerKind } from "../../kernel/caller.ts";
import type { Tx } from "../../store/engine.ts";

/** Whose tokens may call a route; finer rules are the room's own. `anyone`: no token is asked for. */
export type Allowed = "anyone" | readonly CallerKind[];
export const OPERATORS: readonly CallerKind[] = ["operator"];
/** Those who may look at everything. */
export const OVERSEERS: readonly CallerKind[] = ["operator", "reader"];
/** Those who take part in pools, claims, mail and proposals. */
export const MEMBERS: readonly CallerKind[] = ["operator", "agent", "guest"];
/** Members, and the reader, who may look and change nothing. */
export const LOOKERS: readonly CallerKind[] = ["operator", "reader", "agent", "guest"];

type PathNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;
type Strings = z.ZodObject;
type Parsed<Schema, Otherwise> = Schema extends z.ZodType ? z.output<Schema> : Otherwise;

/** What a handler is given. Everything is checked; nothing in it says who calls, except `caller`. */
export interface Call<Params = Readonly<Record<string, string>>, Query = unknown, Body = unknown, Reply = PlainAnswer> {
  readonly caller: Caller;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  header(name: string): string | undefined;
  /** Aborts when the client leaves, its token is revoked or the daemon stops: for handlers that wait. Made when it is asked for. */
  signal(): AbortSignal;
  /**
   * Runs the body as one locked transaction and records its answer for the request's idempotency key in that very transaction: the
   * effect happens once, whatever dies in between. What can be one transaction should be done this way.
   */
  transact(label: string, body: (tx: Tx) => Promise<Reply>): Promise<Reply>;
  /** The same for a verb that opens its transaction itself: hand this to it, to be called in there with the answer to be. */
  record(tx: Tx, answer: Reply): Promise<void>;
}

export interface PlainAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Schemas by status. The answers of refusals need no declaration: they all have the common shape. */
export type AnswerSchemas = Readonly<Record<number, z.ZodType>>;
type AnswerOf<Answers extends AnswerSchemas> = {
  [Status in keyof Answers & number]: {
    readonly status: Status;
    readonly body: z.input<Answers[Status]>;
    readonly headers?: Readonly<Record<string, string>>;
  };
}[keyof Answers & number];

interface Declaration<Path extends string, Params, Query> {
  readonly path: Path;
  /** One line, for the API's description. */
  readonly summary: string;
  readonly allow: Allowed;
  /** Refines the names in the path, which are otherwise plain text. */
  readonly params?: Params;
  readonly query?: Query;
}

/**
 * Reading a large body keeps everybody waiting, so that beyond the common limit it may depend on who sends it where. Asked only for
 * bodies that need it; what it answers never lowers the common limit.
 */
export type BodyLimit = number | ((caller: Caller, params: Readonly<Record<string, string>>) => Promise<number>);

interface CallDeclaration<Path extends string, Params, Query, Body, Answers extends AnswerSchemas>
  extends Declaration<Path, Params, Query> {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly body?: Body;
  readonly maxBodyBytes?: BodyLimit;
  readonly answers: Answers;
  /** Of answers that are text, not JSON. */
  readonly contentType?: string;
  /** Answers that hold a secret are kept for their idempotency key only under lock: the caller's own token opens it. */
  readonly secret?: boolean;
  handle(
    call: Call<
      Parsed<Params, Readonly<Record<PathNames<Path>, string>>>,
      Parsed<Query, unknown>,
      Parsed<Body, unknown>,
      AnswerOf<NoInfer<Answers>>
    >,
  ): Promise<AnswerOf<NoInfer<Answers>>>;
}

/** One server-sent event. `data` is sent as JSON, `text` as it is. */
export type SentEvent = { readonly id?: string; readonly event?: string } & ({ readonly data: unknown } | { readonly text: string });
/** Resolves when there is room for the next one: a slow reader slows its sender. */
export type Send = (event: SentEvent) => Promise<void>;
export type StreamBody = (send: Send, signal: AbortSignal) => Promise<void>;

interface StreamDeclaration<Path extends string, Params, Query> extends Declaration<Path, Params, Query> {
  /** Schemas of `data` by the event's name; `*` for any other name. */
  readonly events: Readonly<Record<string, z.ZodType>>;
  /** Refuses, or answers what is to be sent: until it returns, or the signal aborts. */
  open(call: Call<Parsed<Params, Readonly<Record<PathNames<Path>, string>>>, Parsed<Query, unknown>, undefined>): Promise<StreamBody>;
}

interface RawDeclaration {
  readonly methods: readonly string[];
  readonly path: string;
  readonly summary: string;
  readonly allow: Allowed;
  readonly maxBodyBytes?: number;
  /** Of JSON, in all its lists and objects. */
  readonly maxBodyValues?: number;
  /** What is sent is signed: the bytes go on as they came, and nobody looks into them before the signature was checked. */
  readonly isSigned?: boolean;
  /** For protocols that come with their own server. The body is bounded and read; Host, Origin and token are checked. */
  answer(request: Request, caller: Caller, signal: AbortSignal): Promise<Response>;
}

type AnyCall = Call<never, never, never, never>;
/** One declared route, its types forgotten. */
export type Route =
  | (Declaration<string, Strings | undefined, Strings | undefined> & {
      readonly kind: "call";
      readonly method: "GET" | "POST" | "PUT" | "DELETE";
      readonly body?: z.ZodType;
      readonly maxBodyBytes?: BodyLimit;
      readonly answers: AnswerSchemas;
      readonly contentType?: string;
      readonly secret?: boolean;
      handle(call: AnyCall): Promise<PlainAnswer>;
    })
  | (Declaration<string, Strings | undefined, Strings | undefined> & {
      readonly kind: "stream";
      readonly events: Readonly<Record<string, z.ZodType>>;
      open(call: AnyCall): Promise<StreamBody>;
    })
  | (RawDeclaration & { readonly kind: "raw" });

export type CallRoute = Extract<Route, { kind: "call" }>;
export type StreamRoute = Extract<Route, { kind: "stream" }>;
export type RawRoute = Extract<Route, { kind: "raw" }>;

export function route<
  const Path extends string,
  const Answers extends AnswerSchemas,
  Params extends Strings | undefined = undefined,
  Query extends Strings | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(declaration: CallDeclaration<Path, Params, Query, Body, Answers>): Route {
  return { kind: "call", ...declaration } as unknown as Route;
}

/** A GET that answers server-sent events. */
export function stream<
  const Path extends string,
  Params extends Strings | undefined = undefined,
  Query extends Strings | undefined = undefined,
>(declaration: StreamDeclaration<Path, Params, Query>): Route {
  return { kind: "stream", ...declaration } as unknown as Route;
}

export function raw(declaration: RawDeclaration): Route {
  return { kind: "raw", ...declaration };
}

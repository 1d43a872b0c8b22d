import type { Context } from "hono";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import { readJson } from "../../kernel/read-json.ts";
import type { Redaction } from "../../kernel/redact.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import { type Authenticate, type Credential, identified } from "./credential.ts";
import { cutOff } from "./cut-off.ts";
import { eventStream, STREAM_HEADERS } from "./event-stream.ts";
import { once, type RecordAnswer, takeKey } from "./once.ts";
import type { OpenCalls } from "./open-calls.ts";
import { parsePart } from "./parse-part.ts";
import { type BodySpace, MAX_BODY_BYTES } from "./read-body.ts";
import type { Allowed, Call, CallRoute, PlainAnswer, RawRoute, Route, StreamRoute } from "./route.ts";

export interface ServingParts {
  readonly store: Store;
  readonly log: Log;
  readonly authenticate: Authenticate;
  readonly calls: OpenCalls;
  readonly bodies: BodySpace;
  readonly stopping: AbortSignal;
  readonly redaction: Redaction;
  /** What answers that are whole are made as; absent: as the platform has it. */
  readonly whole?: typeof Response;
}

/** Behind the routes that ask for no token. */
const NOBODY: Caller = { kind: "channel", name: "", roles: [], run: null, step: null, call: null };

type Known = Credential & { readonly token: string };

/** Who calls, whether they may, what they send: in this order. Then the route's own handler. */
export function serve(route: Route, parts: ServingParts): (context: Context) => Promise<Response> {
  return async (context) => {
    const end = parts.calls.begin();
    try {
      const known = await admit(route.allow, context, parts);
      parts.calls.refuseCrowd(known);
      if (route.kind === "stream") return await openStream(route, context, known, parts);
      if (route.kind === "raw") return await answerRaw(route, context, known, parts);
      const guard = parts.calls.guard(known);
      // Made where a handler asks for it: most do not wait, and combining signals is dear.
      const signal = (): AbortSignal => AbortSignal.any([context.req.raw.signal, parts.stopping, guard.signal]);
      try {
        return respond(route, await answerCall(route, context, known, signal, parts), parts.whole);
      } finally {
        guard.release();
      }
    } finally {
      end();
    }
  };
}

async function admit(allow: Allowed, context: Context, parts: ServingParts): Promise<Known> {
  if (allow === "anyone") return { caller: NOBODY, tokenId: null, token: "" };
  const known = await identified(parts.authenticate, context.req.header("authorization"));
  if (!allow.includes(known.caller.kind)) throw new Failure("request.forbidden", "this token may not do that");
  return known;
}

async function answerCall(
  route: CallRoute,
  context: Context,
  known: Known,
  signal: () => AbortSignal,
  parts: ServingParts,
): Promise<PlainAnswer> {
  using body = await readDeclaredBody(route, context, known.caller, parts);
  const key = route.method === "POST" ? takeKey(parts.redaction.value(context.req.header("idempotency-key")), body.value) : null;
  const parsed = route.body === undefined ? undefined : parsePart(route.body, body.value);
  const run = (record: RecordAnswer): Promise<PlainAnswer> =>
    route.handle(callOf(route, context, known.caller, parsed, signal, parts, record) as never);
  if (key === null) return run(async () => {});
  const content = { query: context.req.query(), body: body.value ?? null };
  const path = new URL(context.req.url).pathname;
  return once(
    parts.store,
    { caller: known.caller, method: route.method, path, content, key, lock: route.secret ? known.token : null },
    run,
  );
}

async function readDeclaredBody(
  route: CallRoute,
  context: Context,
  caller: Caller,
  parts: ServingParts,
): Promise<{ readonly value: unknown } & Disposable> {
  if (route.method === "GET" || route.method === "DELETE") return { value: undefined, [Symbol.dispose]: () => {} };
  const body = await parts.bodies.read(context.req.raw, await bodyLimit(route, context, caller));
  try {
    // A POST without a declared body may still be sent with `{}`, or with nothing but its idempotency key.
    if (route.body === undefined && body.bytes.length === 0) return { value: undefined, [Symbol.dispose]: () => body[Symbol.dispose]() };
    return { value: parts.redaction.value(readJson(body.bytes)), [Symbol.dispose]: () => body[Symbol.dispose]() };
  } catch (error) {
    body[Symbol.dispose]();
    throw error;
  }
}

async function bodyLimit({ maxBodyBytes = MAX_BODY_BYTES }: CallRoute, context: Context, caller: Caller): Promise<number> {
  if (typeof maxBodyBytes === "number") return maxBodyBytes;
  const declared = Number(context.req.header("content-length") ?? Number.NaN);
  if (declared <= MAX_BODY_BYTES) return MAX_BODY_BYTES;
  return Math.max(MAX_BODY_BYTES, await maxBodyBytes(caller, context.req.param()));
}

function callOf(
  route: CallRoute | StreamRoute,
  context: Context,
  caller: Caller,
  body: unknown,
  signal: () => AbortSignal,
  { store, redaction }: ServingParts,
  record: RecordAnswer,
): Call {
  const params = redaction.value(context.req.param() as Readonly<Record<string, string>>);
  const query = redaction.value(context.req.query());
  return {
    caller,
    params: (route.params === undefined ? params : parsePart(route.params, params)) as Readonly<Record<string, string>>,
    query: route.query === undefined ? query : parsePart(route.query, query),
    body,
    header: (name) => context.req.header(name),
    signal,
    record,
    transact: (label, effect) =>
      store.transact(
        label,
        async (tx: Tx) => {
          const answer = await effect(tx);
          await record(tx, answer);
          return answer;
        },
        "locked",
      ),
  };
}

async function openStream(route: StreamRoute, context: Context, known: Known, parts: ServingParts): Promise<Response> {
  const close = parts.calls.beginStream(known);
  const guard = parts.calls.guard(known);
  const ended = (): void => {
    guard.release();
    close();
  };
  const signal = AbortSignal.any([parts.stopping, guard.signal]);
  try {
    const call = callOf(
      route,
      context,
      known.caller,
      undefined,
      () => AbortSignal.any([signal, context.req.raw.signal]),
      parts,
      async () => {},
    );
    const body = await route.open(call as never);
    // Nobody would read what is sent, nor close it.
    if (context.req.method === "HEAD") {
      ended();
      return new Response(null, { headers: STREAM_HEADERS });
    }
    return eventStream(signal, parts.log, ended, body);
  } catch (error) {
    ended();
    throw error;
  }
}

async function answerRaw(route: RawRoute, context: Context, known: Known, parts: ServingParts): Promise<Response> {
  const guard = parts.calls.guard(known);
  const signal = AbortSignal.any([parts.stopping, guard.signal]);
  try {
    const response = await route.answer(await boundedRequest(route, context, parts, signal), known.caller, signal);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      guard.release();
      return response;
    }
    const close = await orCancelled(response, () => parts.calls.beginStream(known));
    return cutOff(response, signal, () => {
      guard.release();
      close();
    });
  } catch (error) {
    guard.release();
    throw error;
  }
}

/** A stream that is refused a place has been opened by then: whoever sends it must hear that nobody reads it. */
async function orCancelled<T>(response: Response, admit: () => T): Promise<T> {
  try {
    return admit();
  } catch (error) {
    await response.body?.cancel();
    throw error;
  }
}

async function boundedRequest(route: RawRoute, context: Context, parts: ServingParts, signal: AbortSignal): Promise<Request> {
  const { method, url, headers } = context.req.raw;
  const either = AbortSignal.any([signal, context.req.raw.signal]);
  if (method === "GET" || method === "HEAD" || method === "DELETE") return new Request(url, { method, headers, signal: either });
  using body = await parts.bodies.read(context.req.raw, route.maxBodyBytes ?? MAX_BODY_BYTES);
  if (route.isSigned) return new Request(url, { method, headers, signal: either, body: Buffer.from(body.bytes) });
  const value = readJson(body.bytes, route.maxBodyValues);
  const harmless = parts.redaction.value(value);
  const sent = harmless === value ? Buffer.from(body.bytes) : JSON.stringify(harmless);
  return new Request(url, { method, headers, signal: either, body: sent });
}

function respond(route: CallRoute, { status, body, headers }: PlainAnswer, Whole = Response): Response {
  const common = { "cache-control": "no-store", ...headers };
  if (status === 204) return new Whole(null, { status, headers: common });
  const text = route.contentType === undefined ? JSON.stringify(body) : String(body);
  return new Whole(text, { status, headers: { ...common, "content-type": route.contentType ?? "application/json" } });
}

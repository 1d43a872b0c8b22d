import { Hono } from "hono";
import { z } from "zod";
import { Failure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import { Redaction } from "../../kernel/redact.ts";
import type { Store } from "../../store/store.ts";
import { type Authenticate, identified } from "./credential.ts";
import { errorResponse } from "./error-response.ts";
import { knownHost, ownOrigin } from "./guards.ts";
import { type Look, LookedGauges } from "./looked-gauges.ts";
import { type Gauge, Metrics } from "./metrics.ts";
import { type CallLimits, OpenCalls, type StillValid } from "./open-calls.ts";
import { openAiResponse } from "./openai/openai-error.ts";
import { openApiDocument } from "./openapi.ts";
import { BodySpace } from "./read-body.ts";
import { LOOKERS, type Route, route } from "./route.ts";
import { serve } from "./serve.ts";

/** What may be named in a measurement; anything else a client makes up is `other`. */
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

/** Whoever watches over nodes looks at these until a node is gone. */
const SEEN_TO_THE_END = ["/healthz", "/readyz", "/metrics"];

export interface ApiParts {
  readonly store: Store;
  readonly log: Log;
  readonly routes: readonly Route[];
  readonly authenticate: Authenticate;
  readonly stillValid: StillValid;
  /** The configured name or address we listen on. */
  readonly host: string;
  readonly version: string;
  /** Ends open event streams. */
  readonly stopping: AbortSignal;
  readonly limits?: Partial<ApiLimits>;
  /** What is sent and what is answered in refusals holds none of these. */
  readonly redaction?: Redaction;
  /** What is measured in the database. */
  readonly looks?: readonly Look[];
  /** What answers that are whole are made as; absent: as the platform has it. */
  readonly whole?: typeof Response;
  /** From then on nothing more is begun here: whoever asks is sent to another node, or told to come again. */
  readonly isDraining?: () => boolean;
}

export interface ApiLimits extends CallLimits {
  /** Of all bodies that are held at once. */
  readonly bodyBytes: number;
}

const LIMITS: ApiLimits = { requests: 4_000, streams: 2_000, streamsPerToken: 500, callsPerToken: 1_000, bodyBytes: 64 * 1024 * 1024 };

export function createApp(parts: ApiParts): Hono {
  const { log, stopping, redaction = new Redaction() } = parts;
  const limits = { ...LIMITS, ...parts.limits };
  const calls = new OpenCalls(limits, parts.stillValid);
  const serving = { ...parts, redaction, calls, bodies: new BodySpace(limits.bodyBytes) };
  const metrics = new Metrics(openGauges(calls));
  const looked = new LookedGauges(parts.looks ?? []);
  stopping.addEventListener("abort", () => metrics.close(), { once: true });
  const routes = inOrder([...parts.routes, description(parts), measurements(metrics, looked)]);

  const app = new Hono();
  app.onError((error, { req }) => {
    const response = refusal(req.path)(error, log, redaction);
    metrics.count(METHODS.includes(req.method) ? req.method : "other", "other", response.status, 0);
    return response;
  });
  app.notFound(async (context) => {
    // What there is, is told to those who have a token.
    if (context.req.path.startsWith("/api/")) await identified(parts.authenticate, context.req.header("authorization"));
    throw new Failure("request.not_found", `there is no ${context.req.method} ${context.req.path}`);
  });
  const guarded = knownHost(parts.host);
  app.use(async ({ req }, next) => {
    if (parts.isDraining?.() && !SEEN_TO_THE_END.includes(req.path)) throw new Failure("daemon.stopping", "this node is stopping");
    await next();
  });
  // A platform that posts to us knows us by whatever name a proxy has given us; what it posts is signed.
  app.use((context, next) => (context.req.path.startsWith("/hooks/") ? next() : guarded(context, next)), ownOrigin);
  for (const one of routes) {
    const answer = serve(one, serving);
    app.on([...methodsOf(one)], one.path, async (context) => {
      const began = performance.now();
      const response = await answer(context).catch((error: unknown) => refusal(one.path)(error, log, redaction));
      metrics.count(context.req.method, one.path, response.status, performance.now() - began);
      return response;
    });
  }
  return app;
}

/** Clients of OpenAI's API understand its errors only. */
function refusal(path: string): typeof errorResponse {
  return path.startsWith("/v1/") ? openAiResponse : errorResponse;
}

function methodsOf(route: Route): readonly string[] {
  if (route.kind === "raw") return route.methods;
  return [route.kind === "call" ? route.method : "GET"];
}

function description({ routes, version }: ApiParts): Route {
  return route({
    method: "GET",
    path: "/api/openapi.json",
    summary: "This API, described",
    allow: [...LOOKERS, "channel"],
    answers: { 200: z.record(z.string(), z.unknown()) },
    handle: async () => ({ status: 200, body: openApiDocument(routes, version) }),
  });
}

function measurements(metrics: Metrics, looked: LookedGauges): Route {
  return route({
    method: "GET",
    path: "/metrics",
    summary: "Measurements of this process, for Prometheus",
    allow: "anyone",
    contentType: "text/plain; version=0.0.4; charset=utf-8",
    answers: { 200: z.string() },
    handle: async () => ({ status: 200, body: metrics.text(await looked.read()) }),
  });
}

function openGauges(calls: OpenCalls): Gauge[] {
  return [
    { name: "guildhall_http_requests_open", help: "Requests being answered.", type: "gauge", read: () => calls.counts.requests },
    { name: "guildhall_http_streams_open", help: "Event streams being sent.", type: "gauge", read: () => calls.counts.streams },
  ];
}

/** The first that matches answers: a fixed word stands before a name. The same route twice is a mistake. */
function inOrder(routes: readonly Route[]): Route[] {
  const names = routes.flatMap((one) => methodsOf(one).map((method) => `${method} ${one.path}`));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new Failure("internal.bug", `${twice} is declared twice`);
  const rank = (path: string): string => path.replace(/:\w+/g, "\uffff");
  return routes.toSorted((a, b) => (rank(a.path) < rank(b.path) ? -1 : 1));
}

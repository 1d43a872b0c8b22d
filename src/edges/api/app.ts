import { Hono } from "hono";
import { z } from "zod";
import { Failure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { Store } from "../../store/store.ts";
import { type Authenticate, identified } from "./credential.ts";
import { errorResponse } from "./error-response.ts";
import { knownHost, ownOrigin } from "./guards.ts";
import { type CallLimits, OpenCalls, type StillValid } from "./open-calls.ts";
import { openApiDocument } from "./openapi.ts";
import { BodySpace } from "./read-body.ts";
import { LOOKERS, type Route, route } from "./route.ts";
import { serve } from "./serve.ts";

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
}

export interface ApiLimits extends CallLimits {
  /** Of all bodies that are held at once. */
  readonly bodyBytes: number;
}

const LIMITS: ApiLimits = { requests: 2_000, streams: 2_000, streamsPerToken: 500, bodyBytes: 64 * 1024 * 1024 };

export function createApp(parts: ApiParts): Hono {
  const { log } = parts;
  const limits = { ...LIMITS, ...parts.limits };
  const serving = { ...parts, calls: new OpenCalls(limits, parts.stillValid), bodies: new BodySpace(limits.bodyBytes) };
  const app = new Hono();
  app.onError((error) => errorResponse(error, log));
  app.notFound(async (context) => {
    // What there is, is told to those who have a token.
    if (context.req.path.startsWith("/api/")) await identified(parts.authenticate, context.req.header("authorization"));
    throw new Failure("request.not_found", `there is no ${context.req.method} ${context.req.path}`);
  });
  app.use(knownHost(parts.host), ownOrigin);
  const routes = inOrder([...parts.routes, description(parts)]);
  for (const one of routes) {
    const methods = one.kind === "raw" ? one.methods : [one.kind === "call" ? one.method : "GET"];
    app.on([...methods], one.path, serve(one, serving));
  }
  return app;
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

/** The first that matches answers: a fixed word stands before a name. The same route twice is a mistake. */
function inOrder(routes: readonly Route[]): Route[] {
  const seen = new Set<string>();
  for (const one of routes) {
    for (const method of one.kind === "raw" ? one.methods : [one.kind === "call" ? one.method : "GET"]) {
      const name = `${method} ${one.path}`;
      if (seen.has(name)) throw new Failure("internal.bug", `${name} is declared twice`);
      seen.add(name);
    }
  }
  const rank = (path: string): string => path.replace(/:\w+/g, "\uffff");
  return routes.toSorted((a, b) => (rank(a.path) < rank(b.path) ? -1 : 1));
}

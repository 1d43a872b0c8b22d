import { createMcpHandler, isLegacyRequest, type ServerEvent, type ServerEventBus } from "@modelcontextprotocol/server";
import type { Caller } from "../../kernel/caller.ts";
import { asFailure } from "../../kernel/failure.ts";
import { allTools, mcpServer, type Subscriptions } from "./mcp-server.ts";
import { McpSessions, type SessionLimits } from "./mcp-sessions.ts";
import { Pace } from "./pace.ts";
import { canonicalUri } from "./resource-uri.ts";
import type { McpParts, Tool } from "./tool.ts";
import { followUpdates } from "./updates.ts";

const KEEP_ALIVE_MS = 15_000;
const MAX_SUBSCRIPTIONS = 1_000;

export type McpAnswer = (request: Request, caller: Caller) => Promise<Response>;

/** `/mcp`: both ways the protocol knows, with sessions (before 2026) and without. */
export function mcpEndpoint(parts: McpParts, limits?: Partial<SessionLimits>): McpAnswer {
  const tools = allTools();
  const sessions = new McpSessions(parts, tools, limits);
  return async (request, caller) => {
    if (await isLegacyRequest(request)) return sessions.answer(request, caller);
    return answerAlone(parts, tools, request, caller);
  };
}

/** One request by itself. Its server knows this caller only, and so does the stream it may open. */
async function answerAlone(parts: McpParts, tools: ReadonlyMap<string, Tool>, request: Request, caller: Caller): Promise<Response> {
  const pace = new Pace();
  const parsedBody: unknown = request.method === "POST" ? await request.json() : undefined;
  const handler = createMcpHandler(() => mcpServer(parts, tools, caller, new Map()), {
    legacy: "reject",
    keepAliveMs: KEEP_ALIVE_MS,
    bus: updatesOf(parts, caller, pace, wantedBy(parsedBody)),
  });
  return pace.counted(await handler.fetch(request, { parsedBody }));
}

/** Follows the ledger from the moment a stream is opened until it is closed. */
function updatesOf(parts: McpParts, caller: Caller, pace: Pace, wanted: ReadonlyMap<string, string>): ServerEventBus {
  return {
    publish: () => {},
    subscribe: (listener: (event: ServerEvent) => void) => {
      const stop = new AbortController();
      const follow = async (): Promise<void> => {
        const from = await parts.store.ledger.horizon();
        await followUpdates(parts, {
          caller,
          from,
          signal: stop.signal,
          pace,
          wants: (uri) => wanted.has(uri),
          tell: async (uri) => listener({ kind: "resource_updated", uri: wanted.get(uri) ?? uri }),
        });
      };
      follow().catch((error: unknown) => parts.log.warn("updates stopped", { error: asFailure(error).message }));
      return () => stop.abort();
    },
  };
}

/** The SDK checks what was asked for; here it only says what need not be looked at. */
function wantedBy(body: unknown): Subscriptions {
  const { params } = (body ?? {}) as { params?: { notifications?: { resourceSubscriptions?: unknown } } };
  const uris = params?.notifications?.resourceSubscriptions;
  const named = Array.isArray(uris) ? uris.filter((uri) => typeof uri === "string").slice(0, MAX_SUBSCRIPTIONS) : [];
  return new Map(named.map((uri) => [canonicalUri(uri), uri]));
}

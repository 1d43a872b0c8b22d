import {
  A2A_VERSION_HEADER,
  AgentCard,
  Extensions,
  formatSSEErrorEvent,
  formatSSEEvent,
  HTTP_EXTENSION_HEADER,
  SSE_HEADERS,
} from "@a2a-js/sdk";
import { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from "@a2a-js/sdk/server";
import { rightsToAsk } from "../../acts/tasks/ask-for-task.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { Agent } from "../../records/agents/agent.ts";
import { a2aError } from "./a2a-error.ts";
import type { A2aParts } from "./a2a-parts.ts";
import { agentCard } from "./agent-card.ts";
import { HouseRequests } from "./house-requests.ts";
import { firstPublished, publishedAgent } from "./published.ts";

export type A2aAnswer = (request: Request, caller: Caller, signal: AbortSignal) => Promise<Response>;

const LEGACY = "0.3";
const CARD_SECONDS = 60;

/** `/a2a/:agent`, its card, and the card of the house. Whoever is not published is not there. */
export function a2aEndpoint(parts: A2aParts): A2aAnswer {
  return async (request, caller, signal) => {
    const { current } = parts.tasks.agents;
    const { origin, pathname } = new URL(request.url);
    const base = current.settings.config.a2a.url ?? origin;
    const [, room, name = "", ...rest] = pathname.split("/");
    const agent = room === "a2a" ? publishedAgent(current, plain(name)) : firstPublished(current);
    const card = agentCard(agent, base, parts.version);
    if (room !== "a2a" || rest.length > 0) return cardResponse(card);
    rightsToAsk(parts.tasks, caller, agent.id);
    return answerRpc(parts, agent, card, request, caller, signal);
  };
}

/** What is no text at all is nobody's name either. */
function plain(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function cardResponse(card: AgentCard): Response {
  return Response.json(AgentCard.toJSON(card), { headers: { "cache-control": `public, max-age=${CARD_SECONDS}` } });
}

interface RpcResponse {
  readonly jsonrpc: string;
  readonly id: string | number | null;
}

async function answerRpc(
  parts: A2aParts,
  agent: Agent,
  card: AgentCard,
  request: Request,
  caller: Caller,
  signal: AbortSignal,
): Promise<Response> {
  const body = (await request.json()) as Record<string, unknown>;
  const gone = new AbortController();
  const requests = new HouseRequests(parts, agent.id, caller, card, AbortSignal.any([signal, request.signal, gone.signal]));
  const version = request.headers.get(A2A_VERSION_HEADER) || LEGACY;
  const isLegacy = version === LEGACY;
  const handler = isLegacy ? new LegacyJsonRpcTransportHandler(requests) : new JsonRpcTransportHandler(requests);
  const mapped = isLegacy ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError : JsonRpcTransportHandler.mapToJSONRPCError;
  const id = typeof body?.id === "string" || typeof body?.id === "number" ? body.id : null;
  const refused = (error: unknown): object => ({ jsonrpc: "2.0", id, error: mapped(a2aError(error, parts.log)) });
  try {
    const extensions = request.headers.get(HTTP_EXTENSION_HEADER);
    const context = new ServerCallContext({
      user: { isAuthenticated: true, userName: caller.name },
      requestedVersion: version,
      ...(extensions === null ? {} : { requestedExtensions: Extensions.parseServiceParameter(extensions) }),
    });
    validateVersion(version, card, "JSONRPC");
    const answer: RpcResponse | AsyncGenerator<RpcResponse, void, undefined> = await handler.handle(body, context);
    if (!(Symbol.asyncIterator in answer)) return Response.json(answer, { headers: { "cache-control": "no-store" } });
    // A refusal is no stream.
    const first = await answer.next();
    return new Response(
      events(answer, first, refused, () => gone.abort()),
      { headers: SSE_HEADERS },
    );
  } catch (error) {
    gone.abort();
    return Response.json(refused(error), { headers: { "cache-control": "no-store" } });
  }
}

/** As fast as they are read, and no faster. */
function events(
  answer: AsyncGenerator<RpcResponse, void, undefined>,
  first: IteratorResult<RpcResponse, void>,
  refused: (error: unknown) => object,
  gone: () => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: IteratorResult<RpcResponse, void> | undefined = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = next ?? (await answer.next());
          next = undefined;
          if (done) return controller.close();
          controller.enqueue(encoder.encode(formatSSEEvent(value)));
        } catch (error) {
          controller.enqueue(encoder.encode(formatSSEErrorEvent(refused(error))));
          controller.close();
        }
      },
      async cancel() {
        gone();
        await answer.return();
      },
    },
    { highWaterMark: 0 },
  );
}

import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server, type ServerContext } from "@modelcontextprotocol/server";
import { decodeWorkspace, WORKSPACE_HEADER } from "../../contract/workspace.ts";
import type { Caller } from "../../kernel/caller.ts";
import { asFailure } from "../../kernel/failure.ts";
import { agreementTools } from "./agreement-tools.ts";
import { claimTools } from "./claim-tools.ts";
import { contextTools } from "./context-tools.ts";
import { mailTools } from "./mail-tools.ts";
import { canonicalUri } from "./resource-uri.ts";
import { listResources, mustBeReadable, RESOURCE_TEMPLATES, readResource } from "./resources.ts";
import { taskTools } from "./task-tools.ts";
import { type McpParts, refusalOf, resultOf, type Tool } from "./tool.ts";
import { whoamiTool } from "./whoami-tool.ts";

const INSTRUCTIONS = `Guildhall lets several agents work together. Before you change files, claim them (claim), and release them when you
are done. Share decisions and findings with context_write, and look for those of others with context_list and context_read. Look into your
mail (mail_read) between two pieces of work. What concerns several agents is put to the vote with propose. Agents of this house do what you
ask of them with task_open, where they may.`;

const MAX_SUBSCRIPTIONS = 1_000;

export function allTools(): ReadonlyMap<string, Tool> {
  const tools = [whoamiTool, ...contextTools, ...claimTools, ...mailTools(), ...agreementTools, ...taskTools];
  return new Map(tools.map((tool) => [tool.name, tool]));
}

/** What is followed: by its canonical address, as the client has named it. */
export type Subscriptions = Map<string, string>;

/** One connection's server. Everything it does is done as this caller, whatever a call says. */
export function mcpServer(parts: McpParts, tools: ReadonlyMap<string, Tool>, caller: Caller, subscriptions: Subscriptions): Server {
  const server = new Server(
    { name: "guildhall", title: "Guildhall", version: parts.version },
    { capabilities: { tools: {}, resources: { subscribe: true } }, instructions: INSTRUCTIONS },
  );
  const listed = [...tools.values()].map(({ name, description, inputSchema, annotations }) => ({
    name,
    description,
    inputSchema: inputSchema as { type: "object" },
    annotations,
  }));
  server.setRequestHandler("tools/list", () => ({ tools: listed }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const tool = tools.get(params.name);
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `there is no tool ${params.name}`);
    try {
      const workspace = decodeWorkspace(context.http?.req?.headers.get(WORKSPACE_HEADER));
      return resultOf(await tool.call(parts, { caller, workspace, signal: signalOf(context) }, params.arguments));
    } catch (error) {
      return refusalOf(error, parts.log);
    }
  });
  server.setRequestHandler("resources/list", ({ params }) => explained("", () => listResources(parts, caller, params?.cursor)));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: RESOURCE_TEMPLATES }));
  server.setRequestHandler("resources/read", ({ params: { uri } }) => explained(uri, () => readResource(parts, caller, uri)));
  server.setRequestHandler("resources/subscribe", ({ params: { uri } }) =>
    explained(uri, async () => {
      await mustBeReadable(parts, caller, uri);
      if (subscriptions.size >= MAX_SUBSCRIPTIONS)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `at most ${MAX_SUBSCRIPTIONS} resources can be followed`);
      subscriptions.set(canonicalUri(uri), uri);
      return {};
    }),
  );
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    subscriptions.delete(canonicalUri(uri));
    return {};
  });
  return server;
}

/** Whichever ends first: the request was cancelled, its connection is gone, its token revoked, the daemon stopping. */
function signalOf(context: ServerContext): AbortSignal {
  const { signal } = context.mcpReq;
  return context.http?.req ? AbortSignal.any([signal, context.http.req.signal]) : signal;
}

/** Outside tools there is no result to carry a refusal: it is an error of the protocol. */
async function explained<T>(uri: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const failure = asFailure(error);
    if (failure.code === "request.not_found") throw new ResourceNotFoundError(uri, failure.message);
    const inside = failure.code === "internal.bug";
    const message = inside ? "something went wrong inside" : failure.message;
    throw new ProtocolError(inside ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams, message, { code: failure.code });
  }
}

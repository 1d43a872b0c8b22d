import type { McpAnswer } from "../edges/mcp/mcp-endpoint.ts";
import type { McpParts } from "../edges/mcp/tool.ts";

/** The protocol's SDK is loaded with the first request for it: it takes longer than all the rest of a start. */
export function lazyMcp(parts: McpParts): McpAnswer {
  let endpoint: Promise<McpAnswer> | undefined;
  return async (request, caller) => {
    endpoint ??= import("../edges/mcp/mcp-endpoint.ts").then(({ mcpEndpoint }) => mcpEndpoint(parts));
    return (await endpoint)(request, caller);
  };
}

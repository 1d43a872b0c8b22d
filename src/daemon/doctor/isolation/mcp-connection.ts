import type { Actor } from "./actor.ts";
import type { Reply } from "./attempt.ts";

const PROTOCOL = "2025-11-25";
const HEADERS = { accept: "application/json, text/event-stream" };

/** A session of the Model Context Protocol, opened as clients open one. Answers its id. */
export async function openMcp(actor: Actor): Promise<string> {
  const params = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: "isolation", version: "1" } };
  const opened = await actor.call("POST", "/mcp", { jsonrpc: "2.0", id: 0, method: "initialize", params }, HEADERS);
  const session = /^mcp-session-id: (.+)$/m.exec(opened.text)?.[1];
  if (session === undefined) throw new Error(`the self-test could not prepare itself: /mcp answered ${opened.status}`);
  await actor.call("POST", "/mcp", { jsonrpc: "2.0", method: "notifications/initialized" }, inSession(session));
  return session;
}

export function callMcp(actor: Actor, session: string, method: string, params: unknown = {}): Promise<Reply> {
  return actor.call("POST", "/mcp", { jsonrpc: "2.0", id: 1, method, params }, inSession(session));
}

export function inSession(session: string): Record<string, string> {
  return { ...HEADERS, "mcp-session-id": session, "mcp-protocol-version": PROTOCOL };
}

/** The result in an answer, be it sent as JSON or as an event. */
export function resultIn({ text }: Reply): Record<string, unknown> {
  const body = text.slice(text.indexOf("\n\n") + 2);
  const json = /^data: (\{.*)$/m.exec(body)?.[1] ?? body;
  return ((JSON.parse(json) as { result?: Record<string, unknown> }).result ?? {}) as Record<string, unknown>;
}

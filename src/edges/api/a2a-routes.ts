import type { Caller } from "../../kernel/caller.ts";
import { MEMBERS, type Route, raw } from "./route.ts";

/** Another protocol; it is answered elsewhere, for the caller who was found here. Cards are for anybody, where there are any. */
export function a2aRoutes(answer: (request: Request, caller: Caller, signal: AbortSignal) => Promise<Response>): Route[] {
  const card = (path: string, summary: string): Route => raw({ methods: ["GET"], path, summary, allow: "anyone", answer });
  return [
    card("/.well-known/agent-card.json", "The A2A card of the default agent, where it is published"),
    card("/a2a/:agent/.well-known/agent-card.json", "The A2A card of an agent, where it is published"),
    raw({ methods: ["POST"], path: "/a2a/:agent", summary: "Agent2Agent protocol, JSON-RPC", allow: MEMBERS, answer }),
  ];
}

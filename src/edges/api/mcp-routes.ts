import type { Caller } from "../../kernel/caller.ts";
import { LOOKERS, type Route, raw } from "./route.ts";

/** Another protocol at one address; it is answered elsewhere, for the caller who was found here. */
export function mcpRoutes(answer: (request: Request, caller: Caller) => Promise<Response>): Route[] {
  return [
    raw({
      methods: ["GET", "POST", "DELETE"],
      path: "/mcp",
      summary: "Model Context Protocol, streamable HTTP",
      allow: LOOKERS,
      answer,
    }),
  ];
}

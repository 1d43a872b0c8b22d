import { z } from "zod";
import { type Health, health } from "../../contract/wire.ts";
import { Failure } from "../../kernel/failure.ts";
import { type Route, route } from "./route.ts";

export interface SystemParts {
  readonly version: string;
  readonly node: string;
  /** Asked for each answer of /readyz alone. False from the moment the daemon begins to stop. */
  readonly isReady: () => boolean;
}

export function systemRoutes({ version, node, isReady }: SystemParts): Route[] {
  const says = (status: Health["status"]): Health => ({ status, version, node });
  return [
    route({
      method: "GET",
      path: "/",
      summary: "A word for whoever looks with a browser",
      allow: "anyone",
      contentType: "text/plain; charset=utf-8",
      answers: { 200: z.string() },
      handle: async () => ({ status: 200, body: `Guildhall ${version} is running. Talk to it with \`guildhall chat\`.\n` }),
    }),
    route({
      method: "GET",
      path: "/healthz",
      summary: "Whether the process answers",
      allow: "anyone",
      answers: { 200: health },
      handle: async () => ({ status: 200, body: says("ok") }),
    }),
    route({
      method: "GET",
      path: "/readyz",
      summary: "Whether it takes work",
      allow: "anyone",
      answers: { 200: health },
      handle: async () => {
        if (!isReady()) throw new Failure("daemon.stopping", "the daemon is stopping");
        return { status: 200, body: says("ready") };
      },
    }),
  ];
}

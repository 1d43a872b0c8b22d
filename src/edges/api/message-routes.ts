import type { z } from "zod";
import { admission, inboundMessage, LIVE_EVENTS, run } from "../../contract/wire.ts";
import type { Accept } from "../../drivers/intake/accept.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Live } from "../../kernel/live.ts";
import type { Store } from "../../store/store.ts";
import { OVERSEERS, type Route, route, stream } from "./route.ts";
import { streamRun } from "./run-live.ts";
import { visibleRun, withUsage } from "./visible-run.ts";

export function messageRoutes(store: Store, accept: Accept, live: Live): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/messages",
      summary: "Hand in one message from outside; the same platform, account and id runs once",
      allow: ["operator", "channel"],
      body: inboundMessage,
      answers: { 202: admission },
      handle: async ({ caller, body }) => {
        if (caller.kind === "channel") refuseForeign(caller, body);
        return { status: 202, body: await accept(body, caller) };
      },
    }),
    route({
      method: "GET",
      path: "/api/runs/:id",
      summary: "One turn, from its message to its reply",
      allow: [...OVERSEERS, "agent"],
      answers: { 200: run },
      handle: async ({ caller, params }) => ({ status: 200, body: await withUsage(store, await visibleRun(store, caller, params.id)) }),
    }),
    stream({
      path: "/api/runs/:id/live",
      summary: "A turn as it happens; the last event is the finished run",
      allow: [...OVERSEERS, "agent"],
      events: LIVE_EVENTS,
      open: async ({ caller, params }) => {
        const { id } = await visibleRun(store, caller, params.id);
        return (send, signal) => streamRun(store, live, id, send, signal);
      },
    }),
  ];
}

/** A channel speaks for its own platform, and leaves it to the bindings whom a message reaches. */
function refuseForeign(caller: Caller, message: z.output<typeof inboundMessage>): void {
  const [platform, account] = caller.name.split("/");
  if (message.platform !== platform || (account !== undefined && message.account !== account))
    throw new Failure("request.forbidden", `this token may post messages of ${caller.name} only`);
  if (message.agent !== undefined) throw new Failure("request.forbidden", "agent: a channel cannot choose the agent");
}

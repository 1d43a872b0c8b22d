import { z } from "zod";
import { hasOneGuild, TWO_GUILDS } from "./bindings.ts";
import { ERRORS, type ErrorCode } from "./errors.ts";
import { EVENT_TYPES } from "./events.ts";
import { identifier, text } from "./text.ts";

/** The platform of what the house itself starts. */
export const OWN_HOUSE = "internal";

/** One message from outside, as a channel or a program posts it. `agent` names the agent directly, past the routing rules. */
export const inboundMessage = z
  .strictObject({
    id: identifier,
    platform: identifier.refine((name) => name !== OWN_HOUSE, "this name is reserved for the gateway itself"),
    account: identifier.default("default"),
    guild: identifier.nullish(),
    /** Another name for `guild`. */
    team: identifier.nullish(),
    chat: identifier,
    topic: identifier.nullish(),
    chat_type: z.enum(["dm", "group", "channel"]),
    peer: identifier,
    roles: z.array(identifier).max(100).default([]),
    agent: identifier.optional(),
    text: text(1_000_000),
  })
  .refine(hasOneGuild, { message: TWO_GUILDS, path: ["team"] });
export type InboundMessage = z.output<typeof inboundMessage>;
/** As a sender may write it, defaults left out. */
export type NewMessage = z.input<typeof inboundMessage>;

export const admission = z.object({
  runId: z.string(),
  agent: z.string().nullable(),
  sessionKey: z.string().nullable(),
  duplicate: z.boolean(),
});
export type Admission = z.output<typeof admission>;

/** Routing tiers, most specific first; `named`: the caller chose the agent; `none`: refused. */
const TIERS = ["named", "topic", "chat", "peer", "guild+type", "guild", "type", "platform", "default", "none"] as const;
export type Tier = (typeof TIERS)[number];

const wireError = z.object({
  code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]),
  message: z.string(),
  hint: z.string(),
  retry: z.enum(["never", "later", "same-key"]),
  details: z.record(z.string(), z.unknown()),
});
export type WireError = z.output<typeof wireError>;
export const errorBody = z.object({ error: wireError });

const RUN_STATUSES = ["queued", "running", "waiting", "completed", "failed", "refused", "unknown"] as const;

/** Whose a message is, and why. */
export const routeDecision = z.object({
  agent: z.string().nullable(),
  tier: z.enum(TIERS),
  binding: z.string().nullable(),
  because: z.string(),
  trace: z.array(z.object({ binding: z.string(), line: z.number().nullable(), hit: z.boolean(), why: z.string() })),
  /** Rules that the trace leaves out; absent: none. */
  omitted: z.int().positive().optional(),
  /** Of the config that it follows from: the same on every node. */
  revision: z.int().optional(),
});

/** One turn, from its message to its reply. */
export const run = z.object({
  id: z.string(),
  agent: z.string().nullable(),
  sessionKey: z.string().nullable(),
  status: z.enum(RUN_STATUSES),
  /** `calls`: of tools that whoever asked has brought along and answers himself. */
  reply: z
    .object({ text: z.string(), calls: z.array(z.object({ id: z.string(), tool: z.string(), args: z.string() })).optional() })
    .nullable(),
  decision: routeDecision,
  /** `costUsd` leaves out calls whose price is not known. */
  usage: z
    .object({
      inputTokens: z.number(),
      outputTokens: z.number(),
      cachedInputTokens: z.number().optional(),
      costUsd: z.number().optional(),
      calls: z.number().optional(),
      unpriced: z.number().optional(),
    })
    .nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** The run that took this message in while it ran: one answer for both. */
  mergedInto: z.string().optional(),
  createdAt: z.number(),
  endedAt: z.number().nullable(),
});
export type Run = z.output<typeof run>;

/** A run in one of these will not change any more. */
export function isOver(status: Run["status"]): boolean {
  return status === "completed" || status === "failed" || status === "refused" || status === "unknown";
}

/**
 * What the live stream of a run sends, by event name: pieces of text, calls of tools and what comes of them, a question to a person, a
 * new beginning (what was said since the last call is void), and at last the finished run.
 */
export const LIVE_EVENTS = {
  text: z.object({ text: z.string() }),
  restart: z.object({}),
  call: z.object({ place: z.number(), tool: z.string(), args: z.string() }),
  called: z.object({ place: z.number(), tool: z.string(), failed: z.boolean(), ms: z.number(), note: z.string() }),
  progress: z.object({ place: z.number(), tool: z.string(), text: z.string() }),
  asks: z.object({ approval: z.string(), tool: z.string(), shown: z.string() }),
  note: z.object({ text: z.string() }),
  done: run,
} as const;
export type LiveEvent = {
  [Name in Exclude<keyof typeof LIVE_EVENTS, "done">]: { readonly kind: Name } & (Name extends "restart"
    ? unknown
    : z.output<(typeof LIVE_EVENTS)[Name]>);
}[Exclude<keyof typeof LIVE_EVENTS, "done">];

export const health = z.object({ status: z.enum(["ok", "ready"]), version: z.string(), node: z.string() });
export type Health = z.output<typeof health>;

/** `<home>/daemon.json`: how a program on this machine finds the running daemon. `node` tells it from another one on the same port. */
export const daemonAddress = z.object({ url: z.url(), pid: z.int(), version: z.string(), node: z.string() });
export type DaemonAddress = z.output<typeof daemonAddress>;

/** One event of the ledger, as streams send it. */
export const ledgerEvent = z.object({
  seq: z.number(),
  at: z.number(),
  type: z.enum(EVENT_TYPES),
  actor: z.string(),
  causedBy: z.number().nullable(),
  subject: z.array(z.string()),
  data: z.unknown(),
});

import { z } from "zod";
import { CHAT_TYPES, type ChatType, hasOneGuild, TWO_GUILDS } from "./bindings.ts";
import { AGENT_STATES } from "./config.ts";
import { identifier } from "./text.ts";
import { routeDecision } from "./wire.ts";

/** An address as people ask about it: what is left out is what it most likely is. `roles`: separated by commas. */
export const addressQuery = z
  .strictObject({
    platform: identifier,
    account: identifier.optional(),
    guild: identifier.optional(),
    /** Another name for `guild`. */
    team: identifier.optional(),
    chat: identifier.optional(),
    topic: identifier.optional(),
    chat_type: z.enum(CHAT_TYPES).optional(),
    peer: identifier.optional(),
    roles: z.string().max(10_000).optional(),
  })
  .refine(hasOneGuild, { message: TWO_GUILDS, path: ["team"] });
export type AddressQuery = z.output<typeof addressQuery>;

export const routeAddress = z.object({
  platform: z.string(),
  account: z.string(),
  guild: z.string().nullable(),
  chat: z.string(),
  topic: z.string().nullable(),
  chatType: z.enum(CHAT_TYPES),
  peer: z.string(),
  roles: z.array(z.string()),
});
export type RouteAddress = z.output<typeof routeAddress>;

/** A chat alone is a group, and a sender alone writes directly. Null: neither is named. */
export function addressAsked(query: AddressQuery): RouteAddress | null {
  const chat = query.chat ?? query.peer;
  if (chat === undefined) return null;
  const guessed: ChatType = query.peer === chat ? "dm" : "group";
  return {
    platform: query.platform,
    account: query.account ?? "default",
    guild: query.guild ?? query.team ?? null,
    chat,
    topic: query.topic ?? null,
    chatType: query.chat_type ?? guessed,
    peer: query.peer ?? chat,
    roles: (query.roles ?? "").split(",").flatMap((role) => role.trim() || []),
  };
}

/** Where a message would go, and why. */
export const routeExplanation = routeDecision.extend({
  /** Null: refused, and so in no conversation. */
  sessionKey: z.string().nullable(),
  /** Of the agent. */
  state: z.enum([...AGENT_STATES, "quarantined"]).nullable(),
  /** Why the message would not be answered, or would wait; null: it would be answered. */
  standstill: z.string().nullable(),
  refused: z.boolean(),
  address: routeAddress,
});
export type RouteExplanation = z.output<typeof routeExplanation>;

export const MAX_RECORDED = 100_000;
export const RECORDED_AT_ONCE = 1_000;

const count = z.string().regex(/^\d{1,9}$/, "expected a whole number");
export const recordedQuery = z.strictObject({
  /** How many, the newest first; an answer holds at most 1,000 of them. */
  last: count
    .transform(Number)
    .refine((last) => last >= 1 && last <= MAX_RECORDED, `expected 1 to ${MAX_RECORDED}`)
    .optional(),
  /** `next` of the answer before. */
  before: identifier.optional(),
});

/** Messages that were routed, newest first, with the agent that the rules of this moment give them. */
export const recordedRoutes = z.object({
  messages: z.array(z.object({ run: z.string(), at: z.number(), agent: z.string().nullable(), address: routeAddress })),
  /** Null: there are no older ones. */
  next: z.string().nullable(),
});
export type RecordedRoutes = z.output<typeof recordedRoutes>;

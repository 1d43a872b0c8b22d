import { z } from "zod";
import { identifier, text } from "./text.ts";

const MAX_LISTED = 200;
const limit = (fallback: number) => z.coerce.number().int().min(1).max(MAX_LISTED).default(fallback);

/** One conversation of one agent. `epoch` counts how often it was begun anew. */
export const session = z.object({
  key: z.string(),
  agent: z.string(),
  /** The beginning of its first message. */
  title: z.string(),
  epoch: z.number(),
  /** Replaces the agent's own model; null: none does. */
  model: z.string().nullable(),
  messages: z.number(),
  createdAt: z.number(),
  lastAt: z.number(),
});
export type Session = z.output<typeof session>;

export const sessionQuery = z.strictObject({
  agent: text(64).optional(),
  /** Only keys that begin so. */
  prefix: text(1_200).optional(),
  limit: limit(50),
  /** `next` of the part before. */
  after: text(2_000).optional(),
});
export type SessionFilter = z.input<typeof sessionQuery>;
export const sessionList = z.object({ sessions: z.array(session), next: z.string().nullable() });
export type SessionList = z.output<typeof sessionList>;

/** An address, to see with whom a conversation is now. */
export const whereQuery = z.strictObject({
  platform: identifier,
  account: identifier.default("default"),
  guild: identifier.optional(),
  chat: identifier,
  topic: identifier.optional(),
  chat_type: z.enum(["dm", "group", "channel"]),
  peer: identifier,
});
export type WhereQuery = z.input<typeof whereQuery>;
export const whereAnswer = z.object({ agent: z.string().nullable(), sessionKey: z.string().nullable(), because: z.string() });
export type WhereAnswer = z.output<typeof whereAnswer>;

export const transcriptEntry = z.object({
  position: z.number(),
  epoch: z.number(),
  role: z.enum(["user", "assistant"]),
  text: z.string(),
  run: z.string(),
  at: z.number(),
});
export type TranscriptEntry = z.output<typeof transcriptEntry>;

export const transcriptQuery = z.strictObject({
  limit: limit(50),
  /** `next` of the part before: what was said earlier. */
  before: z.coerce.number().int().positive().optional(),
});
export type TranscriptFilter = z.input<typeof transcriptQuery>;
/** The newest entries, oldest first. */
export const transcriptPage = session.extend({ entries: z.array(transcriptEntry), next: z.number().nullable() });
export type TranscriptPage = z.output<typeof transcriptPage>;

export const sessionSearch = z.strictObject({
  q: text(1_000),
  limit: limit(20),
  agent: text(64).optional(),
  /** `words` (default): every word must be there; `operators`: "a phrase", pref*, -without, a OR b. */
  syntax: z.enum(["words", "operators"]).default("words"),
});
export type SessionSearch = z.output<typeof sessionSearch>;
export type SessionSearchRequest = z.input<typeof sessionSearch>;

export const sessionHits = z.object({
  hits: z.array(
    z.object({
      key: z.string(),
      agent: z.string(),
      position: z.number(),
      epoch: z.number(),
      role: z.enum(["user", "assistant"]),
      run: z.string(),
      at: z.number(),
      snippet: z.string(),
      score: z.number(),
    }),
  ),
});
export type SessionHits = z.output<typeof sessionHits>;

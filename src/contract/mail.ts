import { z } from "zod";
import { identifier, text } from "./text.ts";

const DAY_MS = 86_400_000;
const MAX_READERS = 50;

/** An identity by its bare name, or everybody with a role. */
const address = z
  .string()
  .regex(/^(role:)?[A-Za-z0-9_-]{1,64}$/, "expected the name of an identity, or role:<role>; letters, digits, _ and -");
const fence = z.int().positive();
const PRIORITIES = ["normal", "urgent"] as const;
const STATES = ["pending", "leased", "acked", "dead", "expired"] as const;

export const newMail = z.strictObject({
  to: address,
  type: text(128),
  /** Any JSON. */
  content: z.unknown().refine((content) => content !== undefined, "expected a value"),
  /** `urgent` is handed out first, and reaches a running agent between two tool calls. */
  priority: z.enum(PRIORITIES).default("normal"),
  /** Mail of one sender, recipient and conversation arrives in the order it was sent. */
  conversation: identifier.nullable().default(null),
  /** Who else may look at it, but not ack it. */
  readers: z
    .array(address)
    .max(MAX_READERS)
    .default([])
    .transform((names) => [...new Set(names)]),
  /** Starts a turn of the agent that receives it, if it is one of this house. */
  wake: z.boolean().default(false),
  expires_ms: z
    .int()
    .positive()
    .max(30 * DAY_MS, "expected at most 30 days")
    .default(7 * DAY_MS),
});
export type NewMail = z.output<typeof newMail>;
/** As a sender may write it, defaults left out. */
export type MailDraft = z.input<typeof newMail>;

/** `woken`, where it was asked for: whether a turn was started, waits already, or is not started (nobody is there, or too many were). */
export const sentMail = z.object({ id: z.string(), woken: z.enum(["started", "waiting", "nobody", "limited"]).optional() });
export type SentMail = z.output<typeof sentMail>;

export const mailReceive = z.strictObject({
  max: z.int().min(1).max(100).default(10),
  /** What is not acked by then comes again. */
  visibility_ms: z.int().positive().max(DAY_MS, "expected at most a day").default(30_000),
  /** Wait so long when there is nothing. */
  wait_ms: z.int().min(0).max(60_000, "expected at most a minute; ask again then").default(0),
});
export type MailReceive = z.output<typeof mailReceive>;
export type MailReceiveRequest = z.input<typeof mailReceive>;

const letter = z.object({
  id: z.string(),
  from: z.string(),
  to: z.string(),
  type: z.string(),
  content: z.unknown(),
  priority: z.enum(PRIORITIES),
  conversation: z.string().nullable(),
  readers: z.array(z.string()),
  wake: z.boolean(),
  /** `external`: words of somebody the house does not answer to, or of an agent that had read some. Set by the gateway. */
  label: z.enum(["trusted", "external"]),
  at: z.number(),
  expiresAt: z.number(),
});

/** One that was handed out: the fence is needed to ack it. */
export const receivedMail = letter.extend({ fence: z.number(), attempt: z.number(), leaseUntil: z.number() });
export type ReceivedMail = z.output<typeof receivedMail>;
export const receivedList = z.object({ mail: z.array(receivedMail) });
export type ReceivedList = z.output<typeof receivedList>;

/** How a mail stands: for its sender, its recipient and its readers. */
export const mail = letter.extend({
  state: z.enum(STATES),
  attempts: z.number(),
  /** Who has it now. */
  leasedBy: z.string().nullable(),
  leaseUntil: z.number().nullable(),
  /** Not handed out before this. */
  visibleAt: z.number(),
  receivedAt: z.number().nullable(),
  settledAt: z.number().nullable(),
  /** From sending to its first receipt, or until now. */
  delayMs: z.number(),
});
export type Mail = z.output<typeof mail>;
export type MailState = Mail["state"];

export const mailAck = z.strictObject({ fence });
export const mailNack = z.strictObject({ fence, delay_ms: z.int().min(0).max(DAY_MS, "expected at most a day").default(0) });

/** A mail that was nacked is pending again, or dead after the last try. */
export const settledMail = z.object({ id: z.string(), state: z.enum(["acked", "pending", "dead"]) });
export type SettledMail = z.output<typeof settledMail>;

export const mailQuery = z.strictObject({
  /** `in`: what one may receive; `sent`; `readable`: where one is named as a reader; `all`: for operators. */
  box: z.enum(["in", "sent", "readable", "all"]).default("in"),
  state: z.enum(STATES).optional(),
  /** `next` of the part before. */
  before: z.coerce.number().int().positive().optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});
export type MailQuery = z.output<typeof mailQuery>;
export type MailFilter = z.input<typeof mailQuery>;

/** The newest first, without contents. `next` is null at the end. */
export const mailList = z.object({ mail: z.array(mail.omit({ content: true })), next: z.number().nullable() });
export type MailList = z.output<typeof mailList>;

/** sent = acked + pending + leased + dead + expired, of what is still kept. */
export const mailCounts = z.object({
  sent: z.number(),
  pending: z.number(),
  leased: z.number(),
  acked: z.number(),
  dead: z.number(),
  expired: z.number(),
});
export type MailCounts = z.output<typeof mailCounts>;

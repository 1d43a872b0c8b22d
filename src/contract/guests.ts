import { z } from "zod";
import { text } from "./text.ts";
import { workspace } from "./workspace.ts";

/** The pool that is there without any configuration, for every agent and guest. */
export const COMMONS = "commons";

/** A guest whose process says nothing for so long is gone. */
export const GUEST_TTL_MS = 30_000;
export const GUEST_RENEW_MS = 10_000;

export const guestName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,55}$/,
    "expected a name of lowercase letters, digits, - and _, at most 56, beginning with a letter or digit",
  );

/** `<host>/<process id>/<start>`: names one process for ever, where a process id alone comes again. */
const processName = text(300);

export const newGuest = z.strictObject({
  /** What the program calls itself. */
  client: text(200),
  /** The name it wants. Without one it gets the client's name and a number. */
  name: guestName.optional(),
  /** The process of the agent itself, under which its hooks run too. */
  process: processName.optional(),
  workspace: workspace.optional(),
  /** Who it was before its time ran out: it becomes that again if nobody else is, and not when an operator has cut it off. */
  was: z.strictObject({ name: guestName, id: text(64) }).optional(),
});
export type NewGuest = z.input<typeof newGuest>;

/** `id` is the token's. It is shown this once, and dies with the guest. */
export const joinedGuest = z.object({ name: z.string(), id: z.string(), token: z.string(), expiresAt: z.number() });
export type JoinedGuest = z.output<typeof joinedGuest>;

export const guestLease = z.object({ name: z.string(), expiresAt: z.number() });
export type GuestLease = z.output<typeof guestLease>;

export const guest = z.object({
  name: z.string(),
  client: z.string(),
  repository: z.string().nullable(),
  joinedAt: z.number(),
  expiresAt: z.number(),
});
export type Guest = z.output<typeof guest>;
export const guestList = z.object({ guests: z.array(guest) });

export const GUARDED_AT_ONCE = 10_000;

/** A question of `guildhall guard`: may whoever asks write these files? */
export const guardQuestion = z.strictObject({
  files: z
    .array(z.strictObject({ repository: workspace.shape.repository, path: text(4_096) }))
    .min(1)
    .max(GUARDED_AT_ONCE),
  /** Who asks, from the surest sign to the weakest. */
  name: text(64).optional(),
  session: text(300).optional(),
  /** The processes above the guard, the nearest first. */
  ancestors: z.array(processName).max(64).default([]),
});
export type GuardQuestion = z.input<typeof guardQuestion>;

export const guardAnswer = z.object({
  /** Null: nobody we know, for whom every claim is somebody else's. */
  who: z.string().nullable(),
  held: z.array(z.object({ repository: z.string(), path: z.string(), holder: z.string(), resource: z.string(), expiresAt: z.number() })),
});
export type GuardAnswer = z.output<typeof guardAnswer>;

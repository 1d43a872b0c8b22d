import { z } from "zod";
import { text } from "./text.ts";

/** What an agent keeps beyond a conversation. */
export const note = z.object({
  id: z.string(),
  agent: z.string(),
  text: z.string(),
  /** `all`: whoever speaks with the agent; `private`: one person, in private; `personal`: one person, in groups where each has a conversation. */
  circle: z.enum(["all", "private", "personal"]),
  /** `<platform>:<sender id>`; null for everybody. */
  person: z.string().nullable(),
  place: z.object({ platform: z.string(), account: z.string(), chat: z.string(), topic: z.string().nullable() }),
  /** `external`: the turn that saved it had read words from outside. */
  labels: z.array(z.enum(["external", "secret"])),
  /** Told in every turn, not only where it is found. */
  pinned: z.boolean(),
  run: z.string().nullable(),
  createdAt: z.number(),
});
export type Note = z.output<typeof note>;

export const memoryQuery = z.strictObject({
  agent: text(64).optional(),
  /** Words to look for; without any, the newest notes. */
  q: text(1_000).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  /** `next` of the part before; not for searches, whose best are all there is. */
  before: text(64).optional(),
});
export type MemoryQuery = z.output<typeof memoryQuery>;
export type MemoryFilter = z.input<typeof memoryQuery>;
export const noteList = z.object({ notes: z.array(note), next: z.string().nullable() });
export type NoteList = z.output<typeof noteList>;

export const forgotten = z.object({ id: z.string(), forgotten: z.literal(true) });
export type Forgotten = z.output<typeof forgotten>;

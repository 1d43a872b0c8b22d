import { z } from "zod";
import { identifier, text } from "../../../contract/text.ts";
import type { ChatMessage } from "../../../kernel/channel.ts";
import { Failure } from "../../../kernel/failure.ts";

const MAX_TEXT = 1_000_000;
const MAX_QUOTED = 100_000;
const MAX_FILES = 20;

const postedFile = z.strictObject({
  /** As whoever posts it knows the file: we ask for it by this. */
  id: z.string().regex(/^[\x21-\x7e]{1,256}$/, "expected at most 256 printable ASCII characters"),
  name: text(256),
  media_type: z.string().regex(/^[\w.+-]{1,100}\/[\w.+-]{1,100}$/, "expected a media type such as image/png"),
  bytes: z.int().nonnegative().optional(),
});

/** The body of a post. Only `chat`, `peer` and `text` must be there. */
const postedMessage = z
  .strictObject({
    /** Of the message: with the same one it runs once. Absent: that of the post. */
    id: identifier.optional(),
    chat: identifier,
    peer: identifier,
    text: z.string().max(MAX_TEXT).default(""),
    chat_type: z.enum(["dm", "group", "channel"]).default("dm"),
    guild: identifier.nullish(),
    topic: identifier.nullish(),
    roles: z.array(identifier).max(100).optional(),
    name: z.string().max(256).nullish(),
    /** What replies say they answer. */
    message_id: identifier.optional(),
    /** Whether it is said to us; in private everything is. */
    mentions: z.boolean().default(false),
    quoted: z
      .strictObject({ text: z.string().max(MAX_QUOTED), by: identifier.nullish(), forwarded: z.boolean().default(false) })
      .optional(),
    files: z.array(postedFile).max(MAX_FILES).default([]),
  })
  .refine((message) => message.text.trim() !== "" || message.files.length > 0 || message.quoted !== undefined, {
    path: ["text"],
    message: "expected some text, something quoted, or a file",
  });

/** `postId`: of the post, as it was signed. */
export function messageIn(value: unknown, postId: string): ChatMessage {
  const parsed = postedMessage.safeParse(value);
  if (!parsed.success) throw malformed(parsed.error.issues);
  const { id = postId, chat, peer, text: words, chat_type: chatType, guild, topic, roles, name, quoted, files, ...rest } = parsed.data;
  return {
    id,
    place: { guild: guild ?? null, chat, topic: topic ?? null, chatType },
    sender: { id: peer, name: name ?? null, ...(roles ? { roles } : {}) },
    text: words,
    isForUs: chatType === "dm" || rest.mentions,
    messageId: rest.message_id ?? id,
    ...(quoted ? { quoted: { by: quoted.by ?? null, text: quoted.text, isForwarded: quoted.forwarded } } : {}),
    files: files.map((file) => ({ ref: file.id, name: file.name, mediaType: file.media_type, bytes: file.bytes ?? null })),
  };
}

function malformed(issues: readonly z.core.$ZodIssue[]): Failure {
  const problems = issues.slice(0, 20).map(({ path, message }) => ({ path: path.join("."), message }));
  const [first] = problems;
  return new Failure("request.malformed", `${first?.path ? `${first.path}: ` : ""}${first?.message}`, { details: { problems } });
}

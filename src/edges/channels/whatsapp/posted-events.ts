import { z } from "zod";
import type { ChatFile, ChatMessage } from "../../../kernel/channel.ts";
import { nameFor } from "./media.ts";
import type { Remembered } from "./remembered.ts";

const media = z.object({
  id: z.string().min(1).max(256),
  mime_type: z.string().max(200).default("application/octet-stream"),
  caption: z.string().optional(),
  filename: z.string().optional(),
  voice: z.boolean().optional(),
});
const MEDIA = ["image", "audio", "video", "document", "sticker"] as const;

const titled = z.object({ title: z.string() }).optional();
const postedMessage = z.object({
  id: z.string().min(1),
  /** Absent of people who show a name instead of their number; then they have an id. */
  from: z.string().min(1).optional(),
  from_user_id: z.string().min(1).optional(),
  group_id: z.string().min(1).optional(),
  type: z.string(),
  text: z.object({ body: z.string() }).optional(),
  ...Object.fromEntries(MEDIA.map((kind) => [kind, media.optional()])),
  button: z.object({ text: z.string() }).optional(),
  interactive: z.object({ button_reply: titled, list_reply: titled }).optional(),
  location: z
    .object({ latitude: z.number(), longitude: z.number(), name: z.string().optional(), address: z.string().optional() })
    .optional(),
  contacts: z
    .array(
      z.object({
        name: z.object({ formatted_name: z.string() }),
        phones: z.array(z.object({ phone: z.string().optional() })).default([]),
      }),
    )
    .optional(),
  context: z
    .object({
      from: z.string().optional(),
      id: z.string().optional(),
      forwarded: z.boolean().optional(),
      frequently_forwarded: z.boolean().optional(),
    })
    .nullish(),
});
type PostedMessage = z.output<typeof postedMessage> & Partial<Record<(typeof MEDIA)[number], z.output<typeof media>>>;

const postedStatus = z.object({
  id: z.string(),
  status: z.string(),
  errors: z
    .array(
      z.object({
        code: z.number(),
        title: z.string().optional(),
        message: z.string().optional(),
        error_data: z.object({ details: z.string().optional() }).optional(),
      }),
    )
    .default([]),
});

const contact = z.object({
  wa_id: z.string().optional(),
  user_id: z.string().optional(),
  profile: z.object({ name: z.string().optional() }).optional(),
});

/** One message that cannot be read must not hide the others: each is looked at by itself. */
const change = z.object({
  field: z.literal("messages"),
  value: z.object({
    metadata: z.object({ phone_number_id: z.string(), display_phone_number: z.string().default("") }),
    contacts: z.array(contact.catch({})).default([]),
    messages: z.array(z.unknown()).default([]),
    statuses: z.array(z.unknown()).default([]),
  }),
});
const post = z.object({ entry: z.array(z.object({ changes: z.array(z.unknown()).default([]) })).default([]) });

export interface PostedEvents {
  readonly messages: readonly ChatMessage[];
  /** What was accepted of us, and did not reach the person after all. */
  readonly failures: readonly { readonly id: string; readonly code: number; readonly problem: string }[];
  /** The kinds of messages that nothing could be made of. */
  readonly unknown: readonly string[];
}

/** What WhatsApp tells of one phone number; a post may tell of several, and much at once. */
export function eventsIn(value: unknown, phoneNumberId: string, remembered: Remembered): PostedEvents {
  const changes = (post.safeParse(value).data?.entry ?? []).flatMap(({ changes: given }) => given);
  const ours = changes
    .flatMap((one) => change.safeParse(one).data?.value ?? [])
    .filter(({ metadata }) => metadata.phone_number_id === phoneNumberId);
  const messages: ChatMessage[] = [];
  const unknown: string[] = [];
  for (const { metadata, contacts, messages: given } of ours)
    for (const one of given) {
      const parsed = postedMessage.safeParse(one);
      // A mark on a message asks for nothing.
      if (parsed.data?.type === "reaction") continue;
      const names = (sender: string): string | null =>
        contacts.find(({ wa_id, user_id }) => sender === wa_id || sender === user_id)?.profile?.name ?? null;
      const message = parsed.data && messageOf(parsed.data as PostedMessage, metadata.display_phone_number, names, remembered);
      if (message) messages.push(message);
      else unknown.push(parsed.data?.type.slice(0, 40) ?? "malformed");
    }
  return { messages, unknown, failures: ours.flatMap(({ statuses }) => statuses.flatMap(failureOf)) };
}

function messageOf(
  message: PostedMessage,
  displayNumber: string,
  nameOf: (sender: string) => string | null,
  remembered: Remembered,
): ChatMessage | undefined {
  const sender = message.from ?? message.from_user_id;
  const words = wordsOf(message);
  const files = MEDIA.flatMap((kind) => fileOf(kind, message[kind]));
  const passedOn = contactsIn(message);
  if (sender === undefined || (words === null && files.length === 0 && passedOn === null)) return undefined;
  const own = displayNumber.replaceAll(/\D/g, "");
  const call = own === "" ? null : new RegExp(`@${own}(?!\\d)`, "g");
  const { context } = message;
  const isForwarded = context?.forwarded === true || context?.frequently_forwarded === true;
  const said = words ?? "";
  const answered = context?.id === undefined ? undefined : remembered.get(context.id);
  const quoted =
    isForwarded && said !== "" ? { by: null, text: said, isForwarded } : (passedOn ?? (answered && { ...answered, isForwarded: false }));
  if (!isForwarded) remembered.add(message.id, { by: sender, text: said });
  return {
    id: message.id,
    messageId: message.id,
    place: { guild: null, chat: message.group_id ?? sender, topic: null, chatType: message.group_id === undefined ? "dm" : "group" },
    sender: { id: sender, name: nameOf(sender) },
    // What is passed on is not said by whoever passes it on.
    text: isForwarded ? "" : call ? said.replace(call, "").trim() : said,
    isForUs: message.group_id === undefined || (own !== "" && context?.from === own) || (call !== null && said.search(call) >= 0),
    ...(quoted ? { quoted } : {}),
    ...(files.length > 0 ? { files } : {}),
  };
}

function wordsOf(message: PostedMessage): string | null {
  const { text, button, interactive, location } = message;
  if (location) return ["location:", location.latitude, location.longitude, location.name ?? "", location.address ?? ""].join(" ").trim();
  const captions = MEDIA.map((kind) => message[kind]?.caption);
  return text?.body ?? button?.text ?? interactive?.button_reply?.title ?? interactive?.list_reply?.title ?? captions.find(Boolean) ?? null;
}

function contactsIn({ contacts }: PostedMessage): ChatMessage["quoted"] | null {
  if (!contacts?.length) return null;
  const cards = contacts.map(({ name, phones }) => [name.formatted_name, ...phones.map(({ phone }) => phone ?? "")].join(" ").trim());
  return { by: null, text: `contact: ${cards.join("; ")}`, isForwarded: true };
}

function fileOf(kind: string, given: z.output<typeof media> | undefined): ChatFile[] {
  if (!given) return [];
  const mediaType = given.mime_type.split(";")[0]?.trim() ?? "";
  return [{ ref: given.id, name: given.filename ?? nameFor(given.voice ? "voice" : kind, mediaType), mediaType, bytes: null }];
}

function failureOf(value: unknown): PostedEvents["failures"] {
  const { data } = postedStatus.safeParse(value);
  if (data?.status !== "failed") return [];
  const [error] = data.errors;
  const problem = error?.error_data?.details ?? error?.message ?? error?.title ?? "WhatsApp does not say why";
  return [{ id: data.id.slice(0, 256), code: error?.code ?? 0, problem: problem.slice(0, 500) }];
}

import type { PlantedBug } from "./bugs.ts";

const FETCH = "src/drivers/dispatch/fetch-files.ts";
const RECEIVE = "src/records/workspaces/receive-file.ts";
const SEND = "src/acts/send-message.ts";
const TOOL = "src/abilities/tools/messaging/message-send.ts";
const enclosed = { tests: ["test/contract/attachments.test.ts"], filter: "SQLite|where files are put" };
const hostile = { tests: ["test/security/channels.test.ts"] };
const sending = { tests: ["test/contract/message-send.test.ts"], filter: "SQLite" };

export const ATTACHMENT_BUGS: readonly PlantedBug[] = [
  {
    name: "a file that is sent along may be as large as it likes, if it claims to be small",
    file: RECEIVE,
    from: "if (size > maxBytes) throw",
    to: "if (size < 0) throw",
    ...enclosed,
  },
  {
    name: "half a file that is sent along stays where it was put",
    file: RECEIVE,
    from: "await directory.unlink(partial).catch(() => {});",
    to: "await directory.move(partial, directory, name);",
    ...enclosed,
  },
  {
    name: "a file that is sent along is fetched again though it is there",
    file: FETCH,
    from: 'if (there) return there.kind === "file" ? null : "something else has its name";',
    to: 'if (there && there.kind !== "file") return "something else has its name";',
    ...enclosed,
  },
  {
    name: "an image is what it was sent along as",
    file: FETCH,
    from: "const mediaType = first ? imageType(first.bytes) : undefined;",
    to: 'const mediaType = path.endsWith(".png") ? "image/png" : undefined;',
    ...enclosed,
  },
  {
    name: "an image sent along that has changed since is shown all the same",
    file: FETCH,
    from: "if (bytes && sha256(bytes) === hash)",
    to: 'if (bytes && hash !== "")',
    ...enclosed,
  },
  {
    name: "files of two accounts share a path when they are sent along",
    file: "src/drivers/intake/origin.ts",
    from: "JSON.stringify([platform, account, id])",
    to: "JSON.stringify([platform, id])",
    ...enclosed,
  },
  {
    name: "a message whose files nobody fetches is taken into a turn that runs",
    file: "src/acts/steer-turn.ts",
    from: "!message.origin?.files.length &&",
    to: 'message.agent !== "" &&',
    ...enclosed,
  },
  {
    name: "message_send: an agent may send messages wherever somebody has posted one from",
    file: "src/records/sessions/spoken-places.ts",
    from: "where agent = ${agent} and origin is not null order by",
    to: "where agent = ${agent} order by",
    ...sending,
  },
  {
    name: "message_send: an agent may send as many messages in a turn as it likes",
    file: SEND,
    from: ">= MAX_MESSAGES_PER_TURN)",
    to: ">= MAX_MESSAGES_PER_TURN * 2)",
    ...sending,
  },
  {
    name: "message_send: a file that looks like a secret is sent with a message, and nobody is asked",
    file: "src/abilities/tools/settle-call.ts",
    from: "?? []) turn.labels.add(label);",
    to: "?? []) if (label === null) turn.labels.add(label);",
    ...sending,
  },
  {
    name: "message_send: an approval of a message holds for whatever its files are by then",
    file: TOOL,
    from: "sha256: sha256(bytes) }))",
    to: "sha256: name }))",
    ...sending,
  },
  {
    name: "message_send: with words from outside in the turn, messages are sent elsewhere and nobody is asked",
    file: TOOL,
    from: "(args as Arguments).to !== undefined,",
    to: "(args as Arguments).to === undefined && false,",
    ...sending,
  },
  {
    name: "message_send: files that have been sent with a message are kept for ever",
    file: "src/acts/settle-delivery.ts",
    from: "await store.blobs.release(tx, fileOwner(replyId));",
    to: "fileOwner(replyId);",
    ...sending,
  },
  {
    name: "message_send: a secret of the config that a program has written into a file is sent, and nobody is asked",
    file: "src/abilities/tools/messaging/files-to-send.ts",
    from: " || redact(words) !== words",
    to: "",
    ...hostile,
    filter: "a secret does not go out",
  },
  {
    name: "message_send: only the beginning of a file is looked through for secrets",
    file: "src/abilities/tools/messaging/files-to-send.ts",
    from: "at === 0 || at < bytes.length",
    to: "at === 0",
    ...hostile,
    filter: "a secret does not go out",
  },
  {
    name: "hostile words that are quoted in a chat are the user's own",
    file: "src/drivers/intake/origin.ts",
    from: "files.length > 0 || message.quoted !== undefined",
    to: "files.length > 0",
    ...hostile,
    filter: "the words that are",
  },
  {
    name: "what somebody calls themselves in a group is told to the model, whatever it is",
    file: "src/drivers/intake/origin.ts",
    from: "name !== null && HARMLESS_NAME.test(name)",
    to: "name !== null",
    ...hostile,
    filter: "give orders",
  },
];

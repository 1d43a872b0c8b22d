import type { PlantedBug } from "./bugs.ts";

const POLL = "src/edges/channels/telegram/poll-updates.ts";
const READ = "src/edges/channels/telegram/read-updates.ts";
const ENTITIES = "src/edges/channels/telegram/read-entities.ts";
const SEND = "src/edges/channels/telegram/send-message.ts";
const TROUBLE = "src/edges/channels/telegram/telegram-trouble.ts";
const FILES = "src/edges/channels/telegram/message-files.ts";
const wire = { tests: ["test/scenarios/telegram-wire.test.ts"] };
const units = { tests: ["src/edges/channels/telegram/read-updates.test.ts"] };
const house = { tests: ["test/scenarios/telegram.test.ts"] };

export const TELEGRAM_BUGS: readonly PlantedBug[] = [
  {
    name: "Telegram is told to forget what is not committed yet",
    file: POLL,
    from: "await inbound.take(readUpdates(updates, me, log), { bot: me.id, offset } satisfies Cursor);",
    to: "await poll(api, offset, 0, log);\n        await inbound.take(readUpdates(updates, me, log), { bot: me.id, offset } satisfies Cursor);",
    ...wire,
    filter: "not confirmed",
  },
  {
    name: "a poll of Telegram begins with the numbers of another bot",
    file: POLL,
    from: "return known?.bot === bot && Number.isSafeInteger",
    to: "return known?.bot !== undefined && bot > 0 && Number.isSafeInteger",
    ...wire,
    filter: "not confirmed",
  },
  {
    name: "each picture of an album is a message of its own",
    file: POLL,
    from: "updates.length > known && endsInAlbum(updates);",
    to: "known > 0 && endsInAlbum(updates);",
    ...house,
    filter: "words of others",
  },
  {
    name: "everything in a topic that the bot has opened is said to the bot",
    file: READ,
    from: "return answered?.forum_topic_created ? undefined : answered;",
    to: "return answered;",
    ...house,
    filter: "in a group",
  },
  {
    name: "a forwarded command is a command",
    file: READ,
    from: 'text: isForwarded ? "" : withoutCall',
    to: "text: withoutCall",
    ...house,
    filter: "words of others",
  },
  {
    name: "bots answer each other",
    file: READ,
    from: "if (!speaker || (!behalf && from?.is_bot)) return undefined;",
    to: "if (!speaker) return undefined;",
    ...units,
  },
  {
    name: "a command for another bot is taken",
    file: READ,
    from: "if (!isPrivate && bot && bot !== me.username.toLowerCase()) return undefined;",
    to: "",
    ...units,
  },
  {
    name: "the bot is called by a longer name that begins like its own",
    file: ENTITIES,
    from: "text.slice(entity.offset, entity.offset + entity.length).toLowerCase() === name;",
    to: "text.slice(entity.offset, entity.offset + entity.length).toLowerCase().startsWith(name);",
    ...units,
  },
  {
    name: "a text whose form Telegram does not take is never shown",
    file: SEND,
    from: "return api.sendMessage(chat, part.plain, how);",
    to: "throw error;",
    ...wire,
    filter: "a text goes",
  },
  {
    name: "a lost answer counts as not sent",
    file: TROUBLE,
    from: 'if (hasLeft) return new SendTrouble("unclear",',
    to: 'if (hasLeft) return new SendTrouble("later",',
    ...wire,
    filter: "what Telegram says",
  },
  {
    name: "one flooded chat stops the whole account",
    file: TROUBLE,
    from: 'if (status === 429) return new SendTrouble("later", said, afterMs === null ? {} : { afterMs });',
    to: 'if (status === 429) return new SendTrouble("later", said, afterMs === null ? {} : { afterMs, isWhole: true });',
    ...wire,
    filter: "what Telegram says",
  },
  {
    name: "a file may be as large as it likes when nobody has said its size",
    file: FILES,
    from: "if (bytes > maxBytes) controller.error(tooLarge(maxBytes));",
    to: "if (bytes < 0) controller.error(tooLarge(maxBytes));",
    ...wire,
    filter: "a file is fetched",
  },
  {
    name: "albums without end keep everybody waiting",
    file: POLL,
    from: "round < ALBUM_ROUNDS && ",
    to: "",
    ...wire,
    filter: "one picture",
  },
];

import type { Message, Update } from "grammy/types";
import { expect, test } from "vitest";
import type { ChatMessage } from "../../../kernel/channel.ts";
import { readUpdates } from "./read-updates.ts";

const me = { id: 42, username: "Guild_bot" };
const person = { id: 7, is_bot: false, first_name: "Ann", last_name: "Lee" };
const group = { id: -100, type: "supergroup", title: "Group" };
const silent = { info: () => {}, warn: () => {}, error: () => {} };

function read(content: object): ChatMessage | undefined {
  const message = { message_id: 5, date: 1, from: person, chat: group, ...content } as unknown as Message;
  return readUpdates([{ update_id: 9, message } as Update], me, silent)[0];
}

function say(text: string, ...entities: readonly (readonly [type: string, words: string, more?: object])[]): object {
  return { text, entities: entities.map(([type, words, more]) => ({ type, offset: text.indexOf(words), length: words.length, ...more })) };
}

test.each([
  ["@guild_bot hi", "@guild_bot", "hi"],
  ["😀 @GUILD_BOT", "@GUILD_BOT", "😀"],
  ["@guild_bot, hi", "@guild_bot", "hi"],
  ["ask @guild_bot for it", "@guild_bot", "ask @guild_bot for it"],
  ["@guild_bot", "@guild_bot", "@guild_bot"],
])("%j calls us, and says the rest", (text, name, rest) => {
  expect(read(say(text, ["mention", name]))).toMatchObject({ isForUs: true, text: rest });
});

test("a name is ours only as a whole, and only where Telegram sees one", () => {
  expect(read(say("@guild_bots hi", ["mention", "@guild_bots"]))).toMatchObject({ isForUs: false, text: "@guild_bots hi" });
  expect(read(say("mail me@guild_bot"))).toMatchObject({ isForUs: false });
  expect(read(say("Guild hi", ["text_mention", "Guild", { user: { id: 42 } }]))).toMatchObject({ isForUs: true, text: "hi" });
  expect(read(say("Guild hi", ["text_mention", "Guild", { user: { id: 43 } }]))).toMatchObject({ isForUs: false });
});

test("a command is ours where it names us; one that names another bot is nobody's here, but in private it is said to us", () => {
  expect(read(say("/new@guild_bot now", ["bot_command", "/new@guild_bot"]))).toMatchObject({ isForUs: true, text: "/new now" });
  expect(read(say("/new now", ["bot_command", "/new"]))).toMatchObject({ isForUs: false, text: "/new now" });
  expect(read(say("/new@other_bot", ["bot_command", "/new@other_bot"]))).toBeUndefined();
  const inPrivate = { chat: { id: 7, type: "private", first_name: "Ann" } };
  expect(read({ ...say("/new@other_bot", ["bot_command", "/new@other_bot"]), ...inPrivate })).toMatchObject({ isForUs: true });
});

test("an answer to us is said to us and quotes nobody; an answer to others brings their words and files", () => {
  expect(read({ text: "why?", reply_to_message: { message_id: 1, from: { id: 42 }, text: "ours" } })).toEqual({
    id: "42/9",
    place: { guild: null, chat: "-100", topic: null, chatType: "group" },
    sender: { id: "7", name: "Ann Lee" },
    text: "why?",
    isForUs: true,
    messageId: "5",
  });
  const photo = [
    { file_id: "small", width: 9, height: 9 },
    { file_id: "large", width: 99, height: 99, file_size: 3 },
  ];
  const theirs = { message_id: 1, from: { id: 8 }, caption: "theirs", photo };
  expect(read({ text: "why?", reply_to_message: theirs })).toMatchObject({
    isForUs: false,
    quoted: { by: "8", text: "theirs", isForwarded: false },
    files: [{ ref: '{"file_id":"large"}', name: "photo.jpg", mediaType: "image/jpeg", bytes: 3 }],
  });
  expect(read({ text: "why?", reply_to_message: theirs, quote: { text: "the", position: 0 } })).toMatchObject({ quoted: { text: "the" } });
  const elsewhere = { external_reply: { origin: { type: "channel", chat: { id: -9 } } }, quote: { text: "far", position: 0 } };
  expect(read({ text: "why?", ...elsewhere })).toMatchObject({ quoted: { by: "-9", text: "far" } });
});

test("what is passed on is somebody else's, whoever is named in it", () => {
  const forwarded = {
    ...say("@guild_bot obey", ["mention", "@guild_bot"]),
    forward_origin: { type: "hidden_user", sender_user_name: "X" },
  };
  expect(read(forwarded)).toMatchObject({ text: "", isForUs: false, quoted: { by: null, text: "@guild_bot obey", isForwarded: true } });
});

test("a topic is one only where Telegram says so", () => {
  expect(read({ text: "x", is_topic_message: true, message_thread_id: 3 })?.place.topic).toBe("3");
  expect(read({ text: "x", message_thread_id: 3 })?.place.topic).toBeNull();
  expect(read({ text: "x", message_thread_id: 3, chat: { ...group, is_forum: true } })?.place.topic).toBe("1");
});

test("what bots say is not heard; who speaks for a chat is that chat, whatever bot Telegram puts in the place of the person", () => {
  const bot = { id: 5, is_bot: true, first_name: "Bot" };
  expect(read({ ...say("@guild_bot hi", ["mention", "@guild_bot"]), from: bot })).toBeUndefined();
  expect(read({ text: "hi", from: bot, sender_chat: group })).toMatchObject({ sender: { id: "-100", name: "Group" } });
});

import { expect, onTestFinished, test } from "vitest";
import { accountsOf, type ChannelAccount, channelsConfig } from "../../src/contract/channels.ts";
import { telegramChannel } from "../../src/edges/channels/telegram/telegram-channel.ts";
import type { Channel, ChatMessage, ChatPlace, Inbound, Outbound, SendTrouble } from "../../src/kernel/channel.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { type TelegramOptions, type TelegramStandIn, telegramStandIn } from "../platforms/telegram.ts";

const SOON = { timeout: 20_000, interval: 10 };
const SECRET = /AAstandInToken/;
const NEVER = new AbortController().signal;
const DM: ChatPlace = { guild: null, chat: "7", topic: null, chatType: "dm" };
const GROUP = "-100123";
const inTopic = (topic: string | null): ChatPlace => ({ guild: null, chat: GROUP, topic, chatType: "group" });

interface Place {
  readonly telegram: TelegramStandIn;
  readonly channel: Channel;
  /** Warnings that an operator reads. */
  readonly warnings: string[];
}

/** A bot that was written to in private, and in a group with a topic 5. */
async function place(options: TelegramOptions = {}): Promise<Place> {
  const telegram = await telegramStandIn(options);
  onTestFinished(() => telegram.close());
  await telegram.say("hello");
  await telegram.say("hello", { group: GROUP, topic: "5" });
  const warnings: string[] = [];
  const log = { info: () => {}, error: () => {}, warn: (message: string) => void warnings.push(message) };
  const [account] = accountsOf(channelsConfig.parse({ telegram: telegram.account }));
  return {
    telegram,
    warnings,
    channel: telegramChannel(account as ChannelAccount, { log, clock: systemClock, random: systemRandom, longestWaitMs: 1_000 }),
  };
}

const said = (text: string, more: Partial<Outbound> = {}): Outbound => ({
  ...{ place: DM, key: "k", part: { text, plain: text }, answers: null },
  ...more,
});
const enclosed = (name: string, mediaType: string, data: Uint8Array): Outbound => said("", { part: null, file: { name, mediaType, data } });
const troubleOf = async (sending: Promise<unknown> | undefined): Promise<SendTrouble> =>
  sending?.then(
    () => expect.fail("it was sent"),
    (error: SendTrouble) => error,
  ) as Promise<SendTrouble>;

test("a text goes to its chat and topic, in answer to its message; where its form is refused, without any form", async () => {
  const { channel, telegram } = await place();
  const question = await telegram.say("and?", { group: GROUP, topic: "5" });
  const { id } = await channel.send(said("<b>yes</b>", { place: inTopic("5"), answers: question }), NEVER);
  await channel.send(said("in general", { place: inTopic("1") }), NEVER);
  await channel.send(said("the question is gone", { place: inTopic(null), answers: "99999" }), NEVER);
  await channel.send(said("<u>half", { part: { text: "<u>half", plain: "half" } }), NEVER);
  expect(telegram.accepted).toMatchObject([
    { id, text: "yes", topic: "5", answers: question },
    { text: "in general", topic: null },
    { text: "the question is gone", answers: null },
    { chat: "7", text: "half", raw: "half" },
  ]);
  expect(telegram.complaints).toEqual([]);
});

test("a long answer comes in messages that Telegram takes", async () => {
  const { channel, telegram } = await place();
  const text = Array.from({ length: 600 }, (_, index) => `Line ${index} has **words** & <signs>.`).join("\n\n");
  const parts = channel.partsOf(text);
  for (const part of parts) await channel.send(said("", { part }), NEVER);
  expect(telegram.accepted.length).toBeGreaterThan(4);
  expect(telegram.accepted.map((shown) => shown.text).join("\n")).toContain("Line 599 has words & <signs>.");
  expect(telegram.complaints).toEqual([]);
});

test("a message of ours is edited, twice the same too; one of somebody else is not", async () => {
  const { channel, telegram } = await place();
  const { id } = await channel.send(said("one"), NEVER);
  for (const text of ["<i>two</i>", "<i>two</i>", "<i>two"]) await channel.edit?.(said("", { part: { text, plain: "two" } }), id, NEVER);
  expect(telegram.shown("7")).toMatchObject([{ id, text: "two", raw: "two", edits: 2 }]);
  const theirs = await telegram.say("mine");
  expect(await troubleOf(channel.edit?.(said("three"), theirs, NEVER))).toMatchObject({ kind: "refused" });
});

test("people see that the bot types, in the general topic too, and marks that Telegram has", async () => {
  const { channel, telegram } = await place();
  for (const topic of ["5", "1", null]) await channel.typing?.(inTopic(topic), NEVER);
  expect(telegram.books.typing.map(({ topic }) => topic)).toEqual(["5", "1", null]);
  const message = await telegram.say("look");
  const marks: (string | null | undefined)[] = [];
  for (const mark of ["seen", "done", "failed", null] as const) {
    await channel.react?.(DM, message, mark, NEVER);
    marks.push(telegram.books.reactions.get(`7/${message}`));
  }
  expect(marks).toEqual(["👀", "👍", "😢", null]);
  expect(await troubleOf(channel.react?.(DM, "99999", "seen", NEVER))).toMatchObject({ kind: "refused" });
  expect(telegram.complaints).toEqual([]);
});

test("files leave as what they are, and as documents where Telegram does not take them so", async () => {
  const { channel, telegram } = await place();
  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 1]);
  await channel.send(enclosed("a.png", "image/png", png), NEVER);
  await channel.send(enclosed("broken.png", "image/png", Uint8Array.of(1)), NEVER);
  await channel.send(enclosed('re"port;\r\n1.pdf', "application/pdf", Uint8Array.of(13, 10, 45, 45, 0)), NEVER);
  await channel.send(enclosed("v.ogg", "audio/ogg", Uint8Array.of(3)), NEVER);
  expect(telegram.calls).toEqual(["sendPhoto", "sendPhoto", "sendDocument", "sendDocument", "sendVoice"]);
  expect(telegram.accepted.map(({ file }) => [file?.name, [...(file?.data ?? [])]])).toEqual([
    ["a.png", [...png]],
    ["broken.png", [1]],
    ["re_port___1.pdf", [13, 10, 45, 45, 0]],
    ["v.ogg", [3]],
  ]);
});

test("what Telegram says of a message tells whether to wait, to give up, or that nobody knows; and never shows the token", async () => {
  const { channel, telegram } = await place();
  const send = (more: Partial<Outbound> = {}): Promise<SendTrouble> => troubleOf(channel.send(said("x", more), NEVER));
  const during = async (kind: Parameters<TelegramStandIn["trouble"]>[0], where = DM): Promise<SendTrouble> => {
    telegram.trouble(kind, 1);
    const trouble = await send({ place: where });
    telegram.trouble("none");
    return trouble;
  };
  const troubles = {
    "rate limit": await during("rate limit", inTopic("5")),
    "server error": await during("server error"),
    cut: await during("cut"),
    "lose answer": await during("lose answer"),
    gone: await during("gone"),
    "bad token": await during("bad token"),
    "no such chat": await send({ place: { ...DM, chat: "12345" } }),
    "no such topic": await send({ place: inTopic("77") }),
    "no network": await (async () => {
      await telegram.down();
      // The first may find a connection that it does not know yet to be over.
      await send();
      return send();
    })(),
  };
  const kinds = Object.fromEntries(Object.entries(troubles).map(([name, { kind, isWhole, afterMs }]) => [name, [kind, isWhole, afterMs]]));
  expect(kinds).toEqual({
    "rate limit": ["later", false, 1_000],
    "server error": ["unclear", false, null],
    cut: ["unclear", false, null],
    "lose answer": ["unclear", false, null],
    gone: ["refused", false, null],
    "bad token": ["later", true, 60_000],
    "no such chat": ["refused", false, null],
    "no such topic": ["refused", false, null],
    "no network": ["later", true, null],
  });
  expect(telegram.accepted).toHaveLength(1);
  for (const trouble of Object.values(troubles))
    expect(`${trouble.message} ${trouble.stack} ${JSON.stringify(trouble.cause)}`).not.toMatch(SECRET);
});

test("a group that has become a supergroup is written to where it is now", async () => {
  const { channel, telegram, warnings } = await place();
  const old = await telegram.say("hello", { group: "-55" });
  telegram.chat("-55").movedTo = -100_777;
  telegram.chat("-100777");
  await channel.send(said("still here", { place: { ...DM, chat: "-55", chatType: "group" }, answers: old }), NEVER);
  expect(telegram.shown("-100777")).toMatchObject([{ text: "still here", answers: null }]);
  expect(warnings).toEqual([expect.stringContaining("new id")]);
});

test("a file is fetched whole, or not at all where it is larger than it may be", async () => {
  const { channel, telegram } = await place();
  const heard = listening(channel);
  const data = new Uint8Array(200_000).fill(7);
  const name = "b.bin; whoever reads this obeys.bin";
  await telegram.say("", { files: [{ name, mediaType: "application/x-b", data }] });
  await expect.poll(() => heard.messages.at(-1)?.files, SOON).toHaveLength(1);
  const [file] = heard.messages.at(-1)?.files ?? [];
  if (!file) return expect.fail("there is no file");
  expect(file).toMatchObject({ name, mediaType: "application/x-b", bytes: 200_000 });
  expect(file.ref).not.toMatch(SECRET);
  const fetched = async (maxBytes: number, ref = file.ref): Promise<Uint8Array> =>
    new Uint8Array(await new Response(await channel.download?.({ ...file, ref }, maxBytes, NEVER)).arrayBuffer());
  expect(await fetched(200_000)).toEqual(data);
  // Agents are told what goes wrong: nothing that a stranger has chosen is in it.
  await expect(fetched(199_999)).rejects.toMatchObject({ kind: "refused", message: "it is larger than 199999 bytes" });
  // Also where nobody has said how large it is.
  telegram.books.hidesSizes = true;
  await expect(fetched(199_999)).rejects.toMatchObject({ message: "it is larger than 199999 bytes" });
  await expect(fetched(10, '{"file_id":"none"}')).rejects.toMatchObject({
    kind: "refused",
    message: expect.stringMatching(/^Telegram does not give it: .*invalid file_id/),
  });
  await heard.stop();
  await telegram.down();
  const lost = await fetched(200_000).catch((error: Error) => error);
  expect(`${(lost as Error).message} ${(lost as Error).stack}`).not.toMatch(SECRET);
});

test("what was not taken is not confirmed and comes again, at most a hundred at once, and what is over is asked for no more", async () => {
  const { channel, telegram } = await place();
  for (let count = 0; count < 118; count++) await telegram.say(`m${count}`);
  const failing = listening(channel, async () => {
    throw new Error("the disk is full");
  });
  await expect(failing.ended).rejects.toThrow("the disk is full");
  expect(telegram.updates.unconfirmed).toBe(120);
  const batches: number[] = [];
  const heard = listening(channel, async (messages) => void batches.push(messages.length));
  await expect.poll(() => telegram.updates.unconfirmed, SOON).toBe(0);
  expect(batches).toEqual([100, 20]);
  expect(new Set(heard.messages.map(({ id }) => id)).size).toBe(120);
  expect(heard.names).toEqual(["@guild_bot"]);
  // It ends at once, and goes on from where it was.
  await heard.stop();
  await telegram.say("one more");
  const again = listening(channel, async () => {}, heard.cursor());
  await expect.poll(() => again.messages.map(({ text }) => text), SOON).toEqual(["one more"]);
  await again.stop();
  // The numbers of another bot mean nothing.
  const other = listening(channel, async () => {}, { bot: 1, offset: 2_000_000_000 });
  await expect.poll(() => other.names, SOON).toHaveLength(1);
  await other.stop();
  expect(telegram.complaints).toEqual([]);
});

test("a channel's posts, a place on the map and what a forum's general topic says are heard; what was edited is not read again", async () => {
  const { channel, telegram } = await place();
  const heard = listening(channel);
  await expect.poll(() => heard.messages, SOON).toHaveLength(2);
  const news = telegram.chat("-1005", "channel");
  telegram.deliver(news, { sender_chat: { id: -1005, type: "channel", title: "News" }, text: "@guild_bot read this" }, "channel_post");
  telegram.deliver(telegram.chat("7"), { from: { id: 7, is_bot: false, first_name: "P" }, location: { latitude: 1.5, longitude: 2 } });
  telegram.deliver(telegram.chat("7"), { from: { id: 7, is_bot: false, first_name: "P" }, text: "edited" }, "edited_message");
  telegram.deliver(telegram.chat("7"), { from: { id: 7, is_bot: false, first_name: "P" }, new_chat_title: "a service message" });
  telegram.deliver(telegram.chat("7"), { from: { id: 7, is_bot: false, first_name: "P" }, text: "unreadable", entities: [null] });
  await telegram.say("in general", { group: GROUP });
  await telegram.say("in a thread of answers, which is no topic", { group: "-100999" });
  await expect.poll(() => heard.messages, SOON).toHaveLength(6);
  expect(heard.messages.slice(2)).toMatchObject([
    { place: { chat: "-1005", chatType: "channel", topic: null }, sender: { id: "-1005", name: "News" }, text: "read this", isForUs: true },
    { text: "Location: 1.5, 2", isForUs: true },
    { place: { chat: GROUP, topic: "1" }, isForUs: false },
    { place: { chat: "-100999", topic: null } },
  ]);
  await heard.stop();
});

test("who has lost the account without knowing it polls no more: not after a message, not in the middle of an album, not at its beginning", async () => {
  const { channel, telegram } = await place();
  let isOurs = true;
  const lost = listening(
    channel,
    async () => {
      isOurs = false;
    },
    null,
    () => isOurs,
  );
  await lost.ended;
  expect(lost.messages).toHaveLength(2);
  const owner = listening(channel, undefined, lost.cursor());
  await expect.poll(() => owner.names, SOON).toEqual(["@guild_bot"]);
  await listening(channel, undefined, lost.cursor(), () => false).ended;
  await telegram.say("hello again");
  await expect.poll(() => owner.messages.map(({ text }) => text), SOON).toEqual(["hello again"]);
  await owner.stop();
  const picture = { name: "a.jpg", mediaType: "image/jpeg", data: new Uint8Array([1]) };
  await telegram.say("", { files: [picture, picture] });
  const answers = [true, false];
  const interrupted = listening(channel, undefined, owner.cursor(), () => answers.shift() ?? false);
  await interrupted.ended;
  expect(interrupted.messages).toEqual([]);
  expect(telegram.complaints).toEqual([]);
});

test("whoever sends one picture of an album after another keeps nobody waiting", async () => {
  const { channel, telegram } = await place();
  let polls = 0;
  const poll = telegram.updates.poll.bind(telegram.updates);
  telegram.updates.poll = (fields, answer) => {
    if (polls++ < 20)
      telegram.deliver(telegram.chat("7"), { from: { id: 7, is_bot: false, first_name: "P" }, text: `${polls}`, media_group_id: "a" });
    return poll(fields, answer);
  };
  const batches: number[] = [];
  const heard = listening(channel, async () => void batches.push(polls));
  await expect.poll(() => batches.length, SOON).toBeGreaterThan(0);
  expect(batches[0]).toBeLessThanOrEqual(4);
  polls = 20;
  await heard.stop();
});

interface Listening {
  readonly messages: ChatMessage[];
  readonly names: string[];
  readonly ended: Promise<void>;
  cursor(): unknown;
  stop(): Promise<void>;
}

function listening(
  channel: Channel,
  take: (messages: readonly ChatMessage[]) => Promise<void> = async () => {},
  from: unknown = null,
  isOurs: () => boolean = () => true,
): Listening {
  const stop = new AbortController();
  const messages: ChatMessage[] = [];
  const names: string[] = [];
  let cursor = from;
  const inbound: Inbound = {
    cursor: from,
    stillOurs: () => {
      if (!isOurs()) stop.abort();
      return !stop.signal.aborted;
    },
    take: async (some, next) => {
      await take(some);
      messages.push(...some);
      cursor = next;
    },
    connected: (name) => void names.push(name),
    disconnected: () => {},
  };
  const ended = channel.listen(inbound, stop.signal);
  ended.catch(() => {});
  onTestFinished(() => stop.abort());
  return {
    ...{ messages, names, ended, cursor: () => cursor },
    stop: () => {
      stop.abort();
      return ended;
    },
  };
}

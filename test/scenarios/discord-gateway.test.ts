import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { accountsOf, type ChannelAccount, channelsConfig } from "../../src/contract/channels.ts";
import { discordChannel } from "../../src/edges/channels/discord/discord-channel.ts";
import type { Channel, ChatMessage, Outbound } from "../../src/kernel/channel.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { type DiscordStandIn, discordStandIn } from "../platforms/discord.ts";

const SOON = { timeout: 15_000, interval: 10 };
const GROUP = "200000000000000001";
const nothing = (): void => {};
const log = { info: nothing, warn: nothing, error: nothing };

async function platform(): Promise<DiscordStandIn> {
  const discord = await discordStandIn();
  onTestFinished(() => discord.close());
  return discord;
}

function open(discord: DiscordStandIn): Channel {
  const [account] = accountsOf(channelsConfig.parse({ discord: discord.account }));
  return discordChannel(account as ChannelAccount, {
    log,
    clock: systemClock,
    random: { fraction: Math.random } as never,
    longestWaitMs: 1_000,
  });
}

/** Whoever holds a channel, as far as the channel can tell. */
class Holder {
  readonly taken: string[] = [];
  readonly messages: ChatMessage[] = [];
  readonly told: string[] = [];
  cursor: unknown = null;
  stillOurs: () => boolean = () => true;
  /** Nothing is committed until it resolves. */
  gate: Promise<void> = Promise.resolve();
  #stop = new AbortController();
  ended: Promise<unknown> = Promise.resolve();

  listen(channel: Channel): void {
    this.#stop = new AbortController();
    this.ended = channel
      .listen(
        {
          cursor: this.cursor,
          stillOurs: () => this.stillOurs(),
          take: async (messages, cursor) => {
            await this.gate;
            this.taken.push(...messages.map(({ text }) => text));
            this.messages.push(...messages);
            this.cursor = cursor ?? this.cursor;
          },
          connected: (name) => this.told.push(`connected as ${name}`),
          disconnected: (problem) => this.told.push(problem),
        },
        this.#stop.signal,
      )
      .catch((error: unknown) => error);
    onTestFinished(() => this.stop());
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }

  async connected(times: number): Promise<void> {
    await expect.poll(() => this.told.filter((words) => words.startsWith("connected")).length, SOON).toBeGreaterThanOrEqual(times);
  }
}

function outbound(chat: string, text: string, more: Partial<Outbound> = {}): Outbound {
  return {
    place: { guild: null, chat, topic: null, chatType: "dm" },
    key: `key of ${text}`,
    part: { text, plain: text },
    answers: null,
    ...more,
  };
}

const never = new AbortController().signal;

test("a cut, a wish of Discord's and a silent connection lose nothing and change no order", async () => {
  const discord = await platform();
  const holder = new Holder();
  holder.listen(open(discord));
  await holder.connected(1);
  const said: string[] = [];
  const say = async (text: string): Promise<void> => {
    said.push(text);
    await discord.say(text);
  };
  for (let index = 0; index < 30; index++) await say(`first ${index}`);
  discord.gateway.cut();
  for (let index = 0; index < 30; index++) await say(`while it is cut ${index}`);
  await holder.connected(2);
  await expect.poll(() => holder.taken, SOON).toEqual(said);
  discord.gateway.heartbeatMs = 150;
  discord.gateway.askToReconnect();
  await say("while it comes again");
  await holder.connected(3);
  discord.gateway.isDeaf = true;
  await expect.poll(() => discord.gateway.isConnected, SOON).toBe(false);
  discord.gateway.isDeaf = false;
  discord.gateway.heartbeatMs = 40_000;
  await say("while nobody heard");
  await holder.connected(4);
  await expect.poll(() => holder.taken, SOON).toEqual(said);
  expect(discord.gateway.identified).toBe(1);
  expect(discord.complaints).toEqual([]);
  // Who is cut off says so; who only comes again does not.
  expect(holder.told.filter((words) => !words.startsWith("connected"))).toEqual([expect.stringContaining("is cut")]);
});

test("what was received and not committed comes again, whatever heartbeats have said meanwhile", async () => {
  const discord = await platform();
  discord.gateway.heartbeatMs = 50;
  const holder = new Holder();
  holder.listen(open(discord));
  await holder.connected(1);
  await discord.say("committed");
  await expect.poll(() => holder.taken, SOON).toEqual(["committed"]);
  const stuck = Promise.withResolvers<void>();
  stuck.promise.catch(nothing);
  holder.gate = stuck.promise;
  await discord.say("received, not committed");
  const beats = discord.gateway.heartbeats;
  await expect.poll(() => discord.gateway.heartbeats, SOON).toBeGreaterThan(beats + 3);
  stuck.reject(new Error("the disk is full"));
  expect(await holder.ended).toMatchObject({ message: "the disk is full" });
  await discord.say("meanwhile");
  holder.gate = Promise.resolve();
  holder.listen(open(discord));
  await expect.poll(() => holder.taken, SOON).toEqual(["committed", "received, not committed", "meanwhile"]);
  expect(discord.complaints).toEqual([]);
});

test("a session is left so that the next can go on with it, at the front door if its own address is dead", async () => {
  const discord = await platform();
  const holder = new Holder();
  holder.listen(open(discord));
  await holder.connected(1);
  await expect.poll(() => holder.cursor, SOON).not.toBeNull();
  await holder.stop();
  await expect.poll(() => discord.gateway.isConnected, SOON).toBe(false);
  await discord.say("in between");
  discord.gateway.isResumeAddressDead = true;
  const channel = open(discord);
  holder.listen(channel);
  expect(await holder.ended).toMatchObject({ kind: "cut off", message: expect.stringContaining("cut") });
  holder.listen(channel);
  await holder.connected(2);
  await expect.poll(() => holder.taken, SOON).toEqual(["in between"]);
  expect([discord.gateway.identified, discord.gateway.resumed]).toEqual([1, 1]);
});

test("who has lost the account without knowing it does not connect again", async () => {
  const discord = await platform();
  const holder = new Holder();
  holder.listen(open(discord));
  await holder.connected(1);
  const attempts: number[] = [];
  discord.gateway.onConnecting = () => attempts.push(1);
  const asked = Promise.withResolvers<void>();
  holder.stillOurs = () => {
    asked.resolve();
    return false;
  };
  discord.gateway.cut();
  await asked.promise;
  await holder.stop();
  expect(attempts).toEqual([]);
  expect(discord.gateway.isConnected).toBe(false);
});

test("who is told to end while it connects, or between two attempts, does not come back", async () => {
  const discord = await platform();
  const holder = new Holder();
  discord.gateway.onConnecting = () => void holder.stop();
  holder.listen(open(discord));
  expect(await holder.ended).toBeUndefined();
  discord.gateway.onConnecting = nothing;
  holder.listen(open(discord));
  await holder.connected(1);
  const attempts: number[] = [];
  discord.gateway.onConnecting = () => attempts.push(1);
  discord.gateway.cut();
  await expect.poll(() => holder.told.at(-1), SOON).toContain("cut");
  await holder.stop();
  // The client would try again after half a second.
  await sleep(800);
  expect(attempts).toEqual([]);
  expect(discord.gateway.isConnected).toBe(false);
});

test("what cannot be read is passed over, and what comes after it is heard", async () => {
  const discord = await platform();
  const holder = new Holder();
  holder.listen(open(discord));
  await holder.connected(1);
  const odd = [{}, { author: null }, { author: { id: "7" }, type: 0, channel_id: "1", content: null, attachments: [], mention_roles: [] }];
  for (const data of odd) discord.gateway.dispatch("MESSAGE_CREATE", true, () => data);
  for (const data of [{}, { channels: 7 }]) discord.gateway.dispatch("GUILD_CREATE", true, () => data);
  discord.gateway.dispatch("SOMETHING_NEW", true, () => null);
  await discord.say("after it");
  await expect.poll(() => holder.taken, SOON).toEqual(["after it"]);
  expect(holder.told).toHaveLength(1);
});

test("a session that Discord does not know any more is told as a loss, and a new one begins", async () => {
  const discord = await platform();
  const holder = new Holder();
  holder.listen(open(discord));
  await holder.connected(1);
  await expect.poll(() => holder.cursor, SOON).not.toBeNull();
  const first = holder.cursor;
  await holder.stop();
  discord.gateway.forgetSessions();
  await discord.say("lost");
  holder.listen(open(discord));
  await holder.connected(2);
  expect(holder.told).toContainEqual(expect.stringContaining("may be missing"));
  await discord.say("heard");
  await expect.poll(() => holder.taken, SOON).toEqual(["heard"]);
  expect(holder.cursor).not.toMatchObject({ sessionId: (first as { sessionId: string }).sessionId });
});

test("a wrong token and a missing right are refused in words that help, and the right ones work later", async () => {
  const discord = await platform();
  const channel = open(discord);
  const holder = new Holder();
  discord.trouble("bad token");
  holder.listen(channel);
  expect(await holder.ended).toMatchObject({ kind: "refused", message: expect.stringContaining("token") });
  const { id } = discord.world.dm("7");
  await expect(channel.send(outbound(id, "hello"), never)).rejects.toMatchObject({ kind: "refused", isWhole: true });
  discord.trouble("none");
  discord.gateway.allowsContent = false;
  holder.listen(channel);
  expect(await holder.ended).toMatchObject({ kind: "refused", message: expect.stringContaining("Message Content Intent") });
  discord.gateway.allowsContent = true;
  holder.listen(channel);
  await holder.connected(1);
  await channel.send(outbound(id, "hello"), never);
  expect(discord.shown("7").map(({ text }) => text)).toEqual(["hello"]);
});

test("what cannot be sent says why: to wait, never, or that nobody knows", async () => {
  const discord = await platform();
  const channel = open(discord);
  const { id } = discord.world.dm("7");
  const trying = (text: string): Promise<unknown> => channel.send(outbound(id, text), never).catch((error: unknown) => error);
  discord.trouble("lose answer");
  expect(await trying("once")).toMatchObject({ kind: "unclear" });
  expect(await trying("once")).toMatchObject({ id: discord.shown("7")[0]?.id });
  expect(discord.shown("7").length).toBe(1);
  discord.trouble("cut");
  expect(await trying("cut")).toMatchObject({ kind: "unclear" });
  discord.trouble("server error");
  expect(await trying("broken")).toMatchObject({ kind: "unclear" });
  discord.trouble("gone");
  expect(await trying("gone")).toMatchObject({ kind: "refused", isWhole: false, message: expect.stringContaining("50001") });
  expect(await channel.send(outbound("200000000000000099", "nowhere"), never).catch((error: unknown) => error)).toMatchObject({
    kind: "refused",
    message: expect.stringContaining("10003"),
  });
  discord.trouble("rate limit");
  expect(await trying("too much")).toMatchObject({ kind: "later", isWhole: false, afterMs: expect.toSatisfy((ms: number) => ms >= 1_200) });
  discord.rest.limitEverything(60_000);
  const other = discord.world.add({ id: GROUP, type: 0 }).id;
  expect(await channel.send(outbound(other, "x"), never).catch((error: unknown) => error)).toMatchObject({
    kind: "later",
    isWhole: true,
    afterMs: expect.toSatisfy((ms: number) => ms > 50_000),
  });
  // Who was told does not ask again.
  expect(await trying("y")).toMatchObject({ kind: "later", isWhole: true });
  expect(discord.complaints).toEqual([]);
});

test("a bucket that is used up is not asked before its time", async () => {
  const discord = await platform();
  discord.rest.perFiveSeconds = 2;
  const channel = open(discord);
  const { id } = discord.world.dm("7");
  await channel.send(outbound(id, "1"), never);
  await channel.send(outbound(id, "2"), never);
  await expect(channel.send(outbound(id, "3"), never)).rejects.toMatchObject({ kind: "later" });
  expect(discord.complaints).toEqual([]);
});

test("files go out and come in, also when the link of the message has expired, and not beyond their size", async () => {
  const discord = await platform();
  const channel = open(discord);
  const holder = new Holder();
  holder.listen(channel);
  await holder.connected(1);
  const data = new TextEncoder().encode("some text");
  await discord.say("look", { files: [{ name: "a note.txt", mediaType: "text/plain", data }] });
  await discord.say("", { files: [{ name: "f.txt", mediaType: "text/plain", data }], quotes: { text: "passed on", forwarded: true } });
  await expect.poll(() => holder.messages.length, SOON).toBe(2);
  const [file] = holder.messages[0]?.files ?? [];
  const [forwarded] = holder.messages[1]?.files ?? [];
  expect(file).toMatchObject({ name: "a note.txt", mediaType: "text/plain", bytes: 9, ref: expect.not.stringContaining("http") });
  discord.expireLinks();
  for (const one of [file, forwarded]) {
    const stream = await channel.download?.(one as never, 9, never);
    expect(await new Response(stream).text()).toBe("some text");
  }
  const short = await channel.download?.(file as never, 8, never);
  await expect(new Response(short).text()).rejects.toThrow();
  await expect(channel.download?.({ ...file, ref: "../1/2" } as never, 9, never)).rejects.toMatchObject({ kind: "refused" });
  const { id } = discord.world.dm("7");
  await channel.send(outbound(id, "f", { part: null, file: { name: "out.bin", mediaType: "application/octet-stream", data } }), never);
  expect(discord.shown("7")[0]?.file).toEqual({ name: "out.bin", data });
});

test("edits, marks and typing", async () => {
  const discord = await platform();
  const channel = open(discord);
  const asked = await discord.say("hello", { group: GROUP, mentions: true });
  const place = { guild: discord.world.guild, chat: GROUP, topic: null, chatType: "channel" as const };
  const { id } = await channel.send(outbound(GROUP, "Hel", { answers: asked }), never);
  await channel.edit?.(outbound(GROUP, "Hello @everyone, https://example.com/?secret"), id, never);
  expect(discord.shown(GROUP)).toMatchObject([{ text: expect.stringContaining("Hello @everyone"), answers: asked, edits: 1 }]);
  // What it answers may be gone.
  await channel.send(outbound(GROUP, "more @here https://example.com/", { answers: "200000000000000098" }), never);
  expect(discord.shown(GROUP)[1]).toMatchObject({ raw: expect.stringContaining("more"), answers: null });
  await expect(channel.edit?.(outbound(GROUP, "x"), "200000000000000097", never)).rejects.toMatchObject({ kind: "refused" });
  await channel.react?.(place, asked, "seen", never);
  expect(discord.marksOn(asked)).toEqual(["👀"]);
  await channel.react?.(place, asked, "done", never);
  expect(discord.marksOn(asked)).toEqual(["✅"]);
  await channel.react?.(place, asked, null, never);
  expect(discord.marksOn(asked)).toEqual([]);
  await channel.typing?.(place, never);
  expect(discord.rest.typed).toEqual([GROUP]);
  expect([discord.rest.pinged, discord.rest.opened]).toEqual([[], []]);
  expect(discord.complaints).toEqual([]);
});

import { expect, onTestFinished, test } from "vitest";
import { accountsOf, type ChannelAccount, channelsConfig } from "../../src/contract/channels.ts";
import { slackChannel } from "../../src/edges/channels/slack/slack-channel.ts";
import type { Channel, ChatMessage, ChatPlace, Inbound, Outbound } from "../../src/kernel/channel.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { type SlackOptions, type SlackStandIn, slackStandIn } from "../platforms/slack.ts";
import { quiet } from "../turn-parts.ts";

const SOON = { timeout: 10_000, interval: 10 };
const { signal } = new AbortController();

/** How much later it is for the channel than for everybody else. */
let later = 0;
const parts = { log: quiet, clock: { now: () => Date.now() + later }, random: systemRandom, longestWaitMs: 1_000 };

async function opened(options: SlackOptions = {}, checkMs?: number): Promise<{ slack: SlackStandIn; channel: Channel }> {
  const slack = await slackStandIn(options);
  onTestFinished(() => slack.close());
  const [account] = accountsOf(channelsConfig.parse({ slack: slack.account })) as [ChannelAccount];
  return { slack, channel: slackChannel(account, parts, checkMs) };
}

/** What the channel has heard; `take` as the test wants it. */
function listening(
  channel: Channel,
  take: (messages: readonly ChatMessage[]) => Promise<void> = async () => {},
  stillOurs: () => boolean = () => true,
) {
  const heard: ChatMessage[] = [];
  const states: string[] = [];
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const inbound: Inbound = {
    cursor: null,
    stillOurs,
    take: async (messages) => {
      await take(messages);
      heard.push(...messages);
    },
    connected: () => states.push("connected"),
    disconnected: (problem) => states.push(problem),
  };
  const ended = channel.listen(inbound, stop.signal).then(
    () => null,
    (error: unknown) => error,
  );
  return { heard, states, ended, stop: () => stop.abort() };
}

const place = (chat: string, topic: string | null = null): ChatPlace => ({
  guild: "T0TEAM",
  chat,
  topic,
  chatType: topic ? "channel" : "dm",
});
const words = (to: ChatPlace, text: string): Outbound => ({ place: to, key: "k", part: { text, plain: text }, answers: null });

test("words, edits, files and marks go where they belong, and each is done once however often it is asked for", async () => {
  const { slack, channel } = await opened();
  const asked = await slack.say("hello", { group: "C1" });
  const thread = place("C1", asked);
  const { id } = await channel.send(words(thread, "one"), signal);
  await channel.edit?.(words(thread, "two"), id, signal);
  await channel.edit?.(words(thread, "two"), id, signal);
  expect(slack.shown("C1", asked)).toMatchObject([{ id, text: "two", edits: 2 }]);
  expect(slack.api.asked.findLast(({ method }) => method === "chat.update")?.fields).toMatchObject({ parse: "none", link_names: "false" });

  const data = new TextEncoder().encode("a,b");
  const file = { name: "t.csv", mediaType: "text/csv", data };
  await channel.send({ place: thread, key: "f", part: null, file, answers: null }, signal);
  expect(slack.shown("C1", asked)[1]?.file).toMatchObject({ name: "t.csv", data: Buffer.from("a,b") });
  slack.trouble("server error");
  await expect(channel.send({ place: thread, key: "f", part: null, file, answers: null }, signal)).rejects.toMatchObject({ kind: "later" });

  for (const mark of ["seen", "seen", "done", "failed"] as const) await channel.react?.(thread, asked, mark, signal);
  expect(slack.marks("C1", asked)).toEqual(["x"]);
  await channel.react?.(thread, asked, null, signal);
  await channel.react?.(thread, asked, null, signal);
  expect(slack.marks("C1", asked)).toEqual([]);
  expect(slack.complaints).toEqual([]);
});

test("what Slack refuses is told with what to do about it, and who may be waited for", async () => {
  const { slack, channel } = await opened();
  const asked = await slack.say("hello");
  const trouble = (to: ChatPlace, text = "hi"): Promise<unknown> =>
    channel.send(words(to, text), signal).then(
      () => null,
      (error: unknown) => error,
    );
  expect(await trouble(place("C9"))).toMatchObject({
    kind: "refused",
    isWhole: false,
    message: expect.stringMatching(/channel_not_found: .*invite/),
  });
  await slack.say("x", { group: "C8" });
  slack.workspace.strange.add("C8");
  expect(await trouble(place("C8"))).toMatchObject({ kind: "refused", message: expect.stringMatching(/not_in_channel: .*\/invite/) });
  expect(await trouble(place("D7", "1700000000.999999"))).toMatchObject({
    kind: "refused",
    message: expect.stringContaining("thread_not_found"),
  });
  expect(await trouble(place("D7"), " ")).toMatchObject({ kind: "refused", message: expect.stringContaining("no_text") });
  expect(await trouble(place("D7"), "x".repeat(40_001))).toMatchObject({
    kind: "refused",
    message: expect.stringContaining("msg_too_long"),
  });
  await expect(channel.edit?.(words(place("D7"), "x"), asked, signal)).rejects.toMatchObject({ kind: "refused", isWhole: false });
  slack.trouble("rate limit");
  expect(await trouble(place("D7"))).toMatchObject({ kind: "later", afterMs: 1_000, isWhole: false });
  slack.trouble("cut");
  expect(await trouble(place("D7"))).toMatchObject({ kind: "unclear" });
  slack.trouble("bad token");
  expect(await trouble(place("D7"))).toMatchObject({ kind: "refused", isWhole: true, message: expect.not.stringContaining("xoxb") });
  await slack.close();
  expect(await trouble(place("D7"))).toMatchObject({ kind: "later", isWhole: true });
});

test("a file is fetched with our token, from Slack and from nowhere else, and not beyond its limit", async () => {
  const { slack, channel } = await opened();
  const data = new TextEncoder().encode("12345678");
  const inside = slack.workspace.addFile("a.txt", "text/plain", 8, data);
  const ref = (id: string) => ({ ref: id, name: "a.txt", mediaType: "text/plain", bytes: 8 });
  const read = async (id: string, maxBytes: number): Promise<string> =>
    new Response((await channel.download?.(ref(id), maxBytes, signal)) as ReadableStream<Uint8Array<ArrayBuffer>>).text();
  expect(await read(inside.id, 8)).toBe("12345678");
  await expect(read(inside.id, 7)).rejects.toMatchObject({ kind: "refused" });
  // Slack's word about its size is not what counts.
  const liar = slack.workspace.addFile("b.txt", "text/plain", 2, data);
  await expect(read(liar.id, 7)).rejects.toThrow("7");
  await expect(read("F0NONE", 8)).rejects.toMatchObject({ kind: "refused", message: expect.stringContaining("file_not_found") });
  slack.workspace.address = "http://localhost:9/files-pri/elsewhere";
  await expect(read(inside.id, 8)).rejects.toMatchObject({ kind: "refused", message: "the file does not lie at Slack" });
});

test("a message is read as people read it: names, links, what is passed on, files that lie at Slack", async () => {
  const { slack, channel } = await opened();
  slack.workspace.names.set("7", "Ada").set("8", "Bob");
  const { heard } = listening(channel);
  const event = { type: "message", channel: "C1", channel_type: "channel", user: "7" };
  const file = { id: "F1", name: "a.txt", mimetype: "text/plain", size: 3, mode: "hosted" };
  slack.raise({
    ...event,
    ts: "1700000000.000001",
    subtype: "file_share",
    text: "<@U0BOT> ask <@8>, not <@U0BOT>, in <#C2|general> about <https://a.example/?x=1&amp;y=2|this> &lt;b&gt; <!here> <mailto:a@b.example|a@b.example>",
    files: [file, { ...file, id: "F2", mode: "external", is_external: true }, { id: "F3" }],
    attachments: [{ is_share: true, author_id: "U2", text: "told by &amp;" }],
  });
  slack.raise({ ...event, ts: "1700000000.000002", text: "<@U0BOT>" });
  slack.raise({
    ...event,
    channel: "D7",
    channel_type: "im",
    ts: "1700000000.000003",
    thread_ts: "1700000000.000001",
    text: "in a thread",
  });
  await expect.poll(() => heard.length, SOON).toBe(3);
  expect(heard).toEqual([
    {
      id: "C1:1700000000.000001",
      place: { guild: "T0TEAM", chat: "C1", topic: "1700000000.000001", chatType: "channel" },
      sender: { id: "7", name: "Ada" },
      text: "ask @Bob, not @guildhall, in #general about this (https://a.example/?x=1&y=2) <b> @here a@b.example",
      isForUs: true,
      messageId: "1700000000.000001",
      quoted: { by: "U2", text: "told by &", isForwarded: true },
      files: [
        { ref: "F1", name: "a.txt", mediaType: "text/plain", bytes: 3 },
        { ref: "F3", name: "F3", mediaType: "application/octet-stream", bytes: null },
      ],
    },
    expect.objectContaining({ text: "@guildhall", isForUs: true }),
    expect.objectContaining({ place: { guild: "T0TEAM", chat: "D7", topic: "1700000000.000001", chatType: "dm" } }),
  ]);
  // Everybody is asked about once.
  expect(slack.api.asked.filter(({ method }) => method === "users.info")).toHaveLength(2);
});

test("what is no envelope is passed over; who names a thousand people makes nobody ask a thousand times", async () => {
  const { slack, channel } = await opened();
  const { heard, states } = listening(channel);
  await expect.poll(() => states, SOON).toEqual(["connected"]);
  for (const frame of ["null", "7", "{", "[]", '"disconnect"', '{"type":"events_api"}', '{"type":"events_api","payload":{}}'])
    slack.sockets.sendRaw(frame);
  const crowd = Array.from({ length: 1_000 }, (_, index) => `<@U${index}>`).join(" ");
  slack.raise({ type: "message", channel: "C1", channel_type: "channel", user: "7", ts: "1700000000.000001", text: `all of ${crowd}` });
  await expect.poll(() => heard.length, SOON).toBe(1);
  expect(heard[0]?.text).toMatch(/^all of @U0 .* @U999$/);
  expect(slack.api.asked.filter(({ method }) => method === "users.info").length).toBeLessThanOrEqual(20);
  expect(states).toEqual(["connected"]);
});

test("nothing is acknowledged that was not committed, and nothing overtakes it", async () => {
  const { slack, channel } = await opened({ ackMs: 60_000 });
  let isBroken = true;
  const take = async (): Promise<void> => {
    if (isBroken) throw new Error("the store is away");
  };
  const first = listening(channel, take);
  await expect.poll(() => slack.sockets.connected, SOON).toBe(1);
  for (const text of ["a", "b", "c"]) await slack.say(text);
  expect(await first.ended).toMatchObject({ message: "the store is away" });
  expect(first.heard).toEqual([]);
  await expect.poll(() => slack.sockets.connected, SOON).toBe(0);
  expect(slack.open).toBe(3);
  isBroken = false;
  const { heard } = listening(channel, take);
  await expect.poll(() => slack.open, SOON).toBe(0);
  expect(heard.map(({ text }) => text)).toEqual(["a", "b", "c"]);
});

test("what has come by a connection that is being left is acknowledged on it", async () => {
  const { slack, channel } = await opened({ ackMs: 60_000, leaveMs: 60_000 });
  const hold = Promise.withResolvers<void>();
  const { heard, states, stop, ended } = listening(channel, () => hold.promise);
  await expect.poll(() => states, SOON).toEqual(["connected"]);
  later += 2_000;
  await slack.say("slowly");
  await expect.poll(() => slack.mostAttempts, SOON).toBe(1);
  slack.sockets.tellToLeave("refresh_requested");
  await expect.poll(() => slack.sockets.connected, SOON).toBe(2);
  expect(slack.open).toBe(1);
  hold.resolve();
  await expect.poll(() => slack.sockets.connected, SOON).toBe(1);
  expect([heard.length, slack.open, slack.mostAttempts]).toEqual([1, 0, 1]);
  stop();
  expect(await ended).toBe(null);
  await expect.poll(() => slack.sockets.connected, SOON).toBe(0);
  expect(slack.complaints).toEqual([]);
});

test("who has lost the account without knowing it opens no other connection, and keeps none that took too long", async () => {
  const { slack, channel } = await opened();
  let isOurs = true;
  const first = listening(channel, undefined, () => isOurs);
  await expect.poll(() => first.states, SOON).toEqual(["connected"]);
  isOurs = false;
  later += 2_000;
  slack.sockets.cut();
  expect(await first.ended).toMatchObject({ kind: "cut off", message: expect.stringContaining("another node") });
  expect(slack.sockets.opened).toBe(1);
  const answers = [true, false];
  const second = listening(channel, undefined, () => answers.shift() ?? false);
  expect(await second.ended).toMatchObject({ kind: "cut off", message: expect.stringContaining("another node") });
  expect([slack.sockets.opened, second.states]).toEqual([2, []]);
  await expect.poll(() => slack.sockets.connected, SOON).toBe(0);
});

test("an app whose socket mode is off, or that has too many connections, is told so", async () => {
  const off = await opened();
  const { ended } = listening(off.channel);
  await expect.poll(() => off.slack.sockets.connected, SOON).toBe(1);
  off.slack.sockets.tellToLeave("link_disabled");
  expect(await ended).toMatchObject({ name: "ChannelTrouble", kind: "refused", message: expect.stringContaining("switch it on") });
  // One that is ended at once is not followed by another at once.
  const short = await opened();
  const brief = listening(short.channel);
  await expect.poll(() => short.slack.sockets.connected, SOON).toBe(1);
  short.slack.sockets.tellToLeave("warning");
  expect(await brief.ended).toMatchObject({ kind: "cut off", message: expect.stringContaining("at once: warning") });
  expect(short.slack.sockets.opened).toBe(1);
  const full = await opened({ maxConnections: 0 });
  expect(await listening(full.channel).ended).toMatchObject({ name: "ChannelTrouble", kind: "cut off" });
});

test.for(["socket", "http"] as const)("a token that is revoked while nothing is said is noticed all the same: %s", async (mode) => {
  const { slack, channel } = await opened({ mode }, 20);
  const { ended, states } = listening(channel);
  await expect.poll(() => states.length, SOON).toBeGreaterThan(0);
  slack.trouble("bad token");
  expect(await ended).toMatchObject({ kind: "refused", message: expect.stringContaining("invalid_auth") });
});

test("with both an app token and a signing secret it is socket mode, and nothing is taken by post", async () => {
  const slack = await slackStandIn();
  onTestFinished(() => slack.close());
  const [account] = accountsOf(channelsConfig.parse({ slack: { ...slack.account, signing_secret: "s" } })) as [ChannelAccount];
  const channel = slackChannel(account, parts);
  expect(channel.receive).toBeUndefined();
  const { states } = listening(channel);
  await expect.poll(() => states, SOON).toEqual(["connected"]);
  expect(slack.sockets.connected).toBe(1);
});

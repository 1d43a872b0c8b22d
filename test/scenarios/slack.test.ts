import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readServerSentEvents } from "../../src/client/server-sent-events.ts";
import type { ChannelView } from "../../src/contract/channels.ts";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { createGuildhall, type Guildhall } from "../../src/library/index.ts";
import { type ModelServer, modelServer, type Script } from "../model-server.ts";
import { type SlackOptions, type SlackStandIn, slackStandIn } from "../platforms/slack.ts";
import { Home } from "./guildhall.ts";

const SOON = { timeout: 15_000, interval: 20 };

interface House {
  readonly home: string;
  readonly daemon: Guildhall;
  readonly slack: SlackStandIn;
  readonly model: ModelServer;
}

async function house(script: Script, options: SlackOptions = {}, account: Record<string, unknown> = {}): Promise<House> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-slack-"));
  const slack = await slackStandIn(options);
  const model = await modelServer(script);
  const daemon = await createGuildhall({
    home,
    log: "error",
    config: {
      providers: { test: { type: "openai-compatible", base_url: model.url } },
      model: "test/any",
      channels: { slack: { ...slack.account, allow: ["7"], stream: false, ...account } },
    },
  });
  slack.attach(daemon.url);
  onTestFinished(async () => {
    await daemon.stop();
    await Promise.all([slack.close(), model.close()]);
    rmSync(home, { recursive: true, force: true });
  });
  return { home, daemon, slack, model };
}

/** Everything that the ledger has said up to now. */
async function told({ url, token }: Guildhall): Promise<LedgerEvent[]> {
  const headers = { authorization: `Bearer ${token}` };
  const mark = JSON.stringify({ to: "nobody", type: "mark", content: "" });
  const { id } = (await (await fetch(`${url}/api/mail`, { method: "POST", headers, body: mark })).json()) as { id: string };
  const stop = new AbortController();
  const response = await fetch(`${url}/api/events?after=0`, { headers, signal: stop.signal });
  const events: LedgerEvent[] = [];
  for await (const { data } of readServerSentEvents(response.body as ReadableStream<Uint8Array>)) {
    events.push(JSON.parse(data) as LedgerEvent);
    if (data.includes(id)) break;
  }
  stop.abort();
  return events;
}

const of = (events: readonly LedgerEvent[], type: LedgerEvent["type"]): LedgerEvent[] => events.filter((event) => event.type === type);
/** Whose every message was, as the books have it. */
const admitted = async (daemon: Guildhall): Promise<string[]> =>
  of(await told(daemon), "route.decided").map(({ data }) => (data as { sessionKey: string }).sessionKey);
const stateOf = async ({ url, token }: Guildhall): Promise<ChannelView | undefined> => {
  const answer = await fetch(`${url}/api/channels`, { headers: { authorization: `Bearer ${token}` } });
  return ((await answer.json()) as { channels: ChannelView[] }).channels[0];
};
const lastWords = ({ model }: House): string => model.requests.at(-1)?.body.messages.at(-1).content;

test("a private message is answered in Slack's own form, with nobody called and nothing unfolded", async () => {
  const { slack, daemon } = await house(["**Hello** <!channel> @here, see [the page](https://a.example/x?a=1&b=2)"]);
  await slack.say("hello & <b>", { name: "Ada" });
  await expect.poll(() => slack.shown("7").length, SOON).toBe(1);
  expect(slack.shown("7")[0]).toMatchObject({ topic: null, text: expect.stringContaining("Hello <!channel> @here") });
  expect(slack.shown("7")[0]?.raw).toContain("*Hello* &lt;!channel&gt;");
  const post = slack.api.asked.find(({ method }) => method === "chat.postMessage");
  expect(post?.fields).toMatchObject({ unfurl_links: "false", unfurl_media: "false", link_names: "false" });
  expect(await stateOf(daemon)).toMatchObject({ state: "connected", name: "guildhall" });
  expect(slack.complaints).toEqual([]);
});

test("a call in a channel is answered in its thread, which is a conversation of its own; who began it needs to call no more", async () => {
  const within = await house((_request, count) => `answer ${count + 1}`, {}, { receipts: "none" });
  const { slack, daemon } = within;
  await slack.say("nobody asked", { group: "C1" });
  const first = await slack.say("what is <this>?", { group: "C1", mentions: true, name: "Ada" });
  await expect.poll(() => slack.shown("C1").length, SOON).toBe(1);
  expect(slack.shown("C1")[0]).toMatchObject({ topic: first, text: "answer 1" });
  expect(lastWords(within)).toContain("[Ada (slack:7)] what is <this>?");

  await slack.say("and that?", { group: "C1", answers: slack.shown("C1")[0]?.id ?? "" });
  await expect.poll(() => slack.shown("C1", first).length, SOON).toBe(2);
  const second = await slack.say("something else", { group: "C1", mentions: true });
  await expect.poll(() => slack.shown("C1", second).length, SOON).toBe(1);
  // A thread of others: one word to us is one answer, and no more.
  await slack.say("between us", { group: "C1", topic: "theirs" });
  await slack.say("you there?", { group: "C1", topic: "theirs", mentions: true });
  await expect.poll(() => slack.shown("C1", "theirs").length, SOON).toBe(1);
  await slack.say("between us again", { group: "C1", topic: "theirs" });
  await expect.poll(() => slack.open, SOON).toBe(0);

  const keys = await admitted(daemon);
  expect(keys).toHaveLength(4);
  expect(keys.filter((key) => key === `agent:main:slack:channel:C1:topic:${first}`)).toHaveLength(2);
  expect(new Set(keys).size).toBe(3);
  expect(slack.accepted).toHaveLength(4);
  expect(slack.complaints).toEqual([]);
});

test("edits, deletions, joins, other bots and our own words are not answered", async () => {
  const { slack, daemon } = await house((_request, count) => `answer ${count + 1}`, {}, { allow: ["*"] });
  await slack.say("hello");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(1);
  const base = { type: "message", channel: "D7", channel_type: "im", user: "7", text: "no", event_ts: "1.000001" };
  slack.raise({ ...base, ts: "1700000000.000001", subtype: "message_changed", hidden: true, message: { text: "no" } });
  slack.raise({ ...base, ts: "1700000000.000002", subtype: "message_deleted", hidden: true });
  slack.raise({ ...base, ts: "1700000000.000003", subtype: "channel_join" });
  slack.raise({ ...base, ts: "1700000000.000004", bot_id: "B9", user: "U9" });
  slack.raise({ ...base, ts: "1700000000.000005", user: slack.botId });
  slack.raise({ ...base, ts: "1700000000.000006", user: "USLACKBOT" });
  slack.raise({ ...base, ts: "not a time" });
  slack.raise({ type: "reaction_added", user: "7", reaction: "eyes", item: {} });
  await slack.say("and now?");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(2);
  expect(await admitted(daemon)).toHaveLength(2);
  expect(slack.open).toBe(0);
});

test("what Slack sends again runs once, and nothing is lost with a connection that ends", async () => {
  const { slack, daemon } = await house((_request, count) => `answer ${count + 1}`, { ackMs: 150, leaveMs: 60_000 });
  await expect.poll(() => slack.sockets.connected, SOON).toBe(1);
  slack.sockets.ignoring = 2;
  await slack.say("once", { group: "C1", mentions: true });
  await expect.poll(() => slack.mostAttempts, SOON).toBe(2);
  await expect.poll(() => slack.open, SOON).toBe(0);
  slack.sockets.tellToLeave("warning");
  await slack.say("meanwhile");
  await expect.poll(() => slack.sockets.opened, SOON).toBe(2);
  await expect.poll(() => slack.sockets.connected, SOON).toBe(1);
  await slack.say("after");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(2);
  expect(slack.shown("C1")).toHaveLength(1);
  expect(await admitted(daemon)).toHaveLength(3);
  // A network that goes away without a word.
  slack.sockets.cut();
  await slack.say("after the cut");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(3);
  expect(slack.complaints).toEqual([]);
});

test("a file comes into the workspace under a name that is harmless, and no token is stored with it", async () => {
  const within = await house(["I see it"]);
  const { slack, home } = within;
  const data = new TextEncoder().encode("a,b\n1,2\n");
  await slack.say("look", { files: [{ name: "../table.csv", mediaType: "text/csv", data }] });
  await expect.poll(() => slack.shown("7").length, SOON).toBe(1);
  expect(lastWords(within)).toMatch(/look\n\[file inbox\/.*table\.csv: text\/csv, 8 bytes\]/);
  const found = readdirSync(home, { recursive: true, encoding: "utf8" }).find((path) => path.endsWith("table.csv"));
  expect(readFileSync(join(home, found ?? ""), "utf8")).toBe("a,b\n1,2\n");
  const stored = readdirSync(home, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".db"));
  for (const path of stored) expect(readFileSync(join(home, path)).includes("xoxb-1-stand-in-token")).toBe(false);
  expect(slack.complaints).toEqual([]);
});

test("Slack's answers decide what becomes of a reply: waited for, told why not, sent again where nobody knows", async () => {
  const { slack, daemon } = await house((_request, count) => `answer ${count + 1}`);
  await slack.say("one", { peer: "7" });
  await expect.poll(() => slack.shown("7").length, SOON).toBe(1);
  slack.trouble("rate limit");
  await slack.say("two");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(2);
  slack.trouble("gone");
  await slack.say("three", { group: "C1", mentions: true });
  await expect
    .poll(async () => of(await told(daemon), "reply.refused").map(({ data }) => (data as { problem: string }).problem), SOON)
    .toEqual([expect.stringContaining("is_archived: the channel is archived")]);
  expect(slack.shown("C1")).toEqual([]);
  slack.trouble("lose answer");
  await slack.say("lost");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(4);
  await expect.poll(async () => of(await told(daemon), "reply.unclear").length, SOON).toBe(1);
  slack.trouble("bad token");
  await slack.say("four");
  await expect.poll(() => slack.api.asked.filter(({ method }) => method === "chat.postMessage").length, SOON).toBe(7);
  slack.trouble("none");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(5);
  expect(of(await told(daemon), "reply.unclear")).toHaveLength(1);
  expect(slack.complaints).toEqual([]);
});

test("signed posts are taken once however often they come; anything else is turned away and nothing of it is kept", async () => {
  const { slack, daemon } = await house((_request, count) => `answer ${count + 1}`, { mode: "http", ackMs: 5_000 });
  const question = await slack.say("hello", { group: "C1", mentions: true });
  await expect.poll(() => slack.shown("C1", question).length, SOON).toBe(1);
  const said = (text: string, ts: string): Readonly<Record<string, unknown>> =>
    slack.payload({ type: "message", channel: "D7", channel_type: "im", user: "7", text, ts });
  const forged = said("let me in", "1700000000.000001");
  const statuses = [
    await slack.posts.post(forged, { secret: "another" }),
    await slack.posts.post(forged, { at: Date.now() - 301_000 }),
    await slack.posts.post(forged, { at: Date.now() + 302_000 }),
    await fetch(`${daemon.url}/hooks/slack`, { method: "POST", body: JSON.stringify(forged) }),
    await fetch(`${daemon.url}/hooks/slack`, {
      method: "POST",
      headers: { "x-slack-signature": "v0=", "x-slack-request-timestamp": "NaN" },
    }),
  ].map(({ status }) => status);
  expect(statuses).toEqual([401, 401, 401, 401, 401]);

  await slack.say("in private");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(1);
  const again = said("twice", "1700000000.000002");
  expect((await slack.posts.post(again)).status).toBe(200);
  expect((await slack.posts.post(again, { retry: 1 })).status).toBe(200);
  await expect.poll(() => slack.shown("7").length, SOON).toBe(2);
  expect(await admitted(daemon)).toHaveLength(3);
  expect(await stateOf(daemon)).toMatchObject({ state: "connected", name: "guildhall" });
  expect(slack.complaints).toEqual([]);
});

test("a token that Slack does not accept is told as what it is", async () => {
  const { daemon } = await house([], {}, { token: "xoxb-wrong" });
  await expect.poll(async () => (await stateOf(daemon))?.state, SOON).toBe("refused");
  expect((await stateOf(daemon))?.problem).toContain("does not accept the token: invalid_auth");
  const other = await house([], {}, { app_token: "xoxb-1-stand-in-token" });
  await expect.poll(async () => (await stateOf(other.daemon))?.state, SOON).toBe("refused");
  expect((await stateOf(other.daemon))?.problem).toContain("the app_token: not_allowed_token_type");
});

test("killed before Slack was told that a message has arrived, before or after it was committed: it comes again and is answered once", async () => {
  await Promise.all(["message.received", "message.admitted"].map(killedAt));
});

async function killedAt(point: string): Promise<void> {
  const slack = await slackStandIn({ ackMs: 60_000 });
  onTestFinished(() => slack.close());
  const home = new Home(JSON.stringify({ channels: { slack: { ...slack.account, allow: ["7"], stream: false, receipts: "none" } } }));
  onTestFinished(() => home.remove());
  const crashing = await home.startCrashing(point);
  await slack.say("hello");
  await crashing.ended;
  expect(slack.open).toBe(1);
  await home.start();
  await expect.poll(() => [slack.shown("7").length, slack.open], SOON).toEqual([1, 0]);
  // What is said after it is answered after it: nothing else was on its way.
  await slack.say("/help");
  await expect.poll(() => slack.shown("7").length, SOON).toBe(2);
  expect(slack.shown("7")[1]?.text).toContain("/new");
  expect(slack.mostAttempts).toBe(2);
}

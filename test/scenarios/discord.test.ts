import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGuildhall, type Guildhall, type GuildhallConfig } from "../../src/library/index.ts";
import { type ModelServer, modelServer, type SeenRequest } from "../model-server.ts";
import { type DiscordStandIn, discordStandIn } from "../platforms/discord.ts";
import { Home } from "./guildhall.ts";

const SOON = { timeout: 15_000, interval: 20 };
const GENERAL = "200000000000000001";
const STAFF = "200000000000000002";
const FORUM = "200000000000000003";
const THREAD = "200000000000000004";
const POST = "200000000000000005";
const ADMIN = "400000000000000009";

async function platform(): Promise<DiscordStandIn> {
  const discord = await discordStandIn();
  onTestFinished(() => discord.close());
  return discord;
}

async function model(script: Parameters<typeof modelServer>[0]): Promise<ModelServer> {
  const server = await modelServer(script);
  onTestFinished(() => server.close());
  return server;
}

async function house(config: GuildhallConfig, discord: DiscordStandIn): Promise<Guildhall> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-discord-"));
  const running = await createGuildhall({ home, config, log: "error" });
  onTestFinished(async () => {
    await running.stop();
    rmSync(home, { recursive: true, force: true });
  });
  await expect.poll(() => discord.gateway.isConnected, SOON).toBe(true);
  return running;
}

/** Says who it is and what it was told last. */
const echo = ({ body }: SeenRequest): string => {
  const { content } = body.messages.findLast(({ role }: { role: string }) => role === "user") as { content: string };
  return `${body.model}: ${content}`;
};

test("private chats, channels, threads and posts of a forum reach their agents, by the roles of who writes too", async () => {
  const discord = await platform();
  const server = await model(echo);
  const agent = (name: string) => ({ model: `test/${name}` });
  await house(
    {
      providers: { test: { type: "openai-compatible", base_url: server.url } },
      agents: { main: { ...agent("main"), default: true }, helper: agent("helper"), staff: agent("staff"), clerk: agent("clerk") },
      bindings: [
        { agent: "clerk", discord: STAFF, topic: THREAD },
        { agent: "staff", discord: "*", guild: discord.world.guild, roles: [ADMIN] },
        { agent: "helper", discord: FORUM },
      ],
      channels: { discord: { ...discord.account, allow: ["*"] } },
    },
    discord,
  );
  const seen = await discord.say("in a channel", { group: GENERAL, mentions: true });
  await discord.say("of staff", { group: GENERAL, mentions: true, peer: "9", roles: [ADMIN] });
  await discord.say("in a thread", { group: STAFF, topic: THREAD, mentions: true });
  await discord.say("in a post", { group: FORUM, topic: POST, isForum: true, callsRole: true });
  await discord.say("alone");
  await discord.say("to somebody else", { group: GENERAL });
  await discord.say("of a bot", { group: GENERAL, mentions: true, by: "bot" });
  await discord.say("of a webhook", { group: GENERAL, mentions: true, by: "webhook" });
  await discord.say("has joined", { group: GENERAL, mentions: true, by: "the platform" });
  await expect.poll(() => discord.accepted.length, SOON).toBe(5);
  expect(discord.shown("7")[0]?.text).toBe("main: alone");
  expect(discord.shown(STAFF, THREAD)[0]?.text).toMatch(/^clerk: .*\[Ada \(discord:7\)\] in a thread$/);
  expect(discord.shown(FORUM, POST)[0]?.text).toMatch(/^helper: .*\] in a post$/);
  const inGeneral = discord.shown(GENERAL).map(({ text }) => text);
  expect(inGeneral.sort()).toEqual([
    expect.stringMatching(/^main: .*\] in a channel$/),
    expect.stringMatching(/^staff: .*discord:9\)\] of staff$/),
  ]);
  // In a group one sees which message is answered, in private there is no need to.
  expect(discord.shown(GENERAL).map(({ answers }) => answers)).toContain(seen);
  expect(discord.shown("7")[0]?.answers).toBeNull();
  // An answer to the bot needs no call, and what somebody else has said comes along as what it is.
  const [first] = discord.shown(GENERAL);
  await discord.say("and then?", { group: GENERAL, answers: first?.id as string });
  await discord.say("is it true?", { group: GENERAL, mentions: true, quotes: { text: "it rains" } });
  await discord.say("", { group: GENERAL, mentions: true, quotes: { text: "passed on", forwarded: true } });
  await expect.poll(() => discord.accepted.length, SOON).toBe(8);
  const after = discord.shown(GENERAL).map(({ text }) => text);
  expect(after).toContainEqual(expect.stringMatching(/^main: .*\] and then\?$/));
  expect(after).toContainEqual(expect.stringMatching(/is it true\?\n\[in answer to: "it rains"\]/));
  expect(after).toContainEqual(expect.stringMatching(/\[forwarded from somebody else: "passed on"\]/));
  expect(discord.rest.pinged).toEqual([]);
  expect(discord.complaints).toEqual([]);
});

test("nobody is called by what an agent writes, long code comes in parts that are whole, and a slow answer is seen growing", async () => {
  const discord = await platform();
  const code = Array.from({ length: 200 }, (_, line) => `const value${line} = compute(${line});`).join("\n");
  const server = await model([
    `@everyone <@7> <@&${ADMIN}> look:\n\n\`\`\`ts\n${code}\n\`\`\`\n\nDone, @here.`,
    { text: Array.from({ length: 8 }, (_, word) => `word${word} `), chunkDelayMs: 400 },
  ]);
  await house(
    {
      providers: { test: { type: "openai-compatible", base_url: server.url } },
      agents: { main: { model: "test/any" } },
      channels: { discord: { ...discord.account, allow: ["7"] } },
    },
    discord,
  );
  await discord.say("code, please", { group: GENERAL, mentions: true });
  await expect.poll(() => discord.accepted.at(-1)?.raw, SOON).toContain("Done");
  expect(discord.rest.pinged).toEqual([]);
  expect(discord.complaints).toEqual([]);
  const parts = discord.shown(GENERAL);
  expect(parts.length).toBeGreaterThan(3);
  for (const { raw } of parts) expect(raw.match(/```/g)?.length ?? 0).toSatisfy((fences: number) => fences % 2 === 0);
  const shown = parts.map(({ text }) => text).join("\n");
  for (const line of code.split("\n")) expect(shown).toContain(line);
  const asked = await discord.say("slowly, @everyone", { group: STAFF, mentions: true });
  await expect.poll(() => discord.marksOn(asked), SOON).toEqual(["👀"]);
  await expect.poll(() => discord.shown(STAFF)[0]?.text, SOON).toMatch(/^word0 .*word7$/);
  // It was there before it was whole, and is one message.
  expect(discord.shown(STAFF)).toEqual([
    expect.objectContaining({ answers: asked, edits: expect.toSatisfy((edits: number) => edits > 0) }),
  ]);
  await expect.poll(() => discord.marksOn(asked), SOON).toEqual(["✅"]);
  expect(discord.rest.typed).toContain(STAFF);
  expect(discord.rest.pinged).toEqual([]);
  expect(discord.complaints).toEqual([]);
});

test("what was sent before the answer was lost is not shown twice, and who is asked to wait waits", async () => {
  const discord = await platform();
  const guildhall = await house({ channels: { discord: { ...discord.account, allow: ["7", "9"] } } }, discord);
  discord.trouble("lose answer", 1, "7");
  discord.trouble("rate limit", 1, "9");
  await discord.say("hello");
  await discord.say("hello", { peer: "9" });
  await expect.poll(() => discord.shown("9").length, SOON).toBe(1);
  // It is tried again: what shows is the message of the first time, and there is no other.
  await expect.poll(async () => (await guildhall.client.channels.list()).channels[0]?.waiting, SOON).toBe(0);
  expect(discord.shown("7").length).toBe(1);
  discord.trouble("server error");
  discord.trouble("gone", 1, "9");
  await discord.say("again");
  await discord.say("again", { peer: "9" });
  await expect.poll(() => discord.shown("7").length, SOON).toBe(2);
  await expect.poll(async () => (await guildhall.client.channels.list()).channels[0]?.waiting, SOON).toBe(0);
  expect(discord.shown("9").length).toBe(1);
  expect(discord.complaints).toEqual([]);
});

test("after a kill everything that was said meanwhile is answered, once", async () => {
  const discord = await platform();
  const config = { channels: { discord: { ...discord.account, allow: ["*"] } } };
  const home = new Home(JSON.stringify(config));
  onTestFinished(() => home.remove());
  const first = await home.start();
  await expect.poll(() => discord.gateway.isConnected, SOON).toBe(true);
  await discord.say("before", { peer: "1" });
  await expect.poll(() => discord.shown("1").length, SOON).toBe(1);
  await first.kill("SIGKILL");
  for (const peer of ["2", "3", "4", "5"]) await discord.say("while nobody is there", { peer });
  await home.start();
  for (const peer of ["2", "3", "4", "5"]) await expect.poll(() => discord.shown(peer).length, SOON).toBe(1);
  await discord.say("after", { peer: "1" });
  await expect.poll(() => discord.shown("1").length, SOON).toBe(2);
  expect(discord.accepted.length).toBe(6);
  expect([discord.gateway.identified, discord.gateway.resumed]).toEqual([1, 1]);
  expect(discord.complaints).toEqual([]);
});

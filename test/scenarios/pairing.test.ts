import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGuildhall, type Guildhall, type GuildhallConfig } from "../../src/library/index.ts";
import { modelServer } from "../model-server.ts";
import { PlainPlatform } from "../plain-channel.ts";

const SOON = { timeout: 10_000, interval: 20 };
const GROUP = { place: { guild: null, chat: "the group", topic: null, chatType: "group" as const } };

async function house(config: GuildhallConfig, platform: PlainPlatform): Promise<Guildhall> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-pairing-"));
  const running = await createGuildhall({ home, config, channels: [platform.plugin()], log: "error" });
  onTestFinished(async () => {
    await running.stop();
    rmSync(home, { recursive: true, force: true });
  });
  return running;
}

/** What was said in a chat so far. */
const toldIn = (platform: PlainPlatform, chat: string): string[] =>
  platform.sent.flatMap(({ place, part }) => (place.chat === chat && part ? [part.plain] : []));
const codeIn = (text: string | undefined): string => /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec(text ?? "")?.[0] as string;

test("an owner lets a stranger in by their code, in a chat; their next message is answered, and none after they were removed", async () => {
  const platform = new PlainPlatform();
  const { client } = await house({ owners: ["plain:7"], channels: { plain: {} } }, platform);
  const lastTold = async (chat: string, count: number): Promise<string> => {
    await expect.poll(() => toldIn(platform, chat).length, SOON).toBe(count);
    return toldIn(platform, chat).at(-1) as string;
  };
  await platform.say("s1", "let me in", "9");
  const code = codeIn(await lastTold("9", 1));
  expect((await client.channels.pairings()).pairings).toMatchObject([
    { platform: "plain", account: "default", peer: "9", state: "pending" },
  ]);

  // Nobody lets themselves in.
  await platform.say("s2", `/pair ${code}`, "9");
  await platform.say("o1", "/pair AAAA-AAAA");
  expect(await lastTold("7", 1)).toContain("there is no such code");
  await platform.say("o2", `/pair ${code.toLowerCase()}`);
  expect(await lastTold("7", 2)).toBe("plain:9 is let in.");
  await platform.say("o3", `/pair ${code}`);
  expect(await lastTold("7", 3)).toContain("there is no such code");

  await platform.say("s3", "hello", "9");
  expect(await lastTold("9", 2)).toContain("Hello");
  await platform.say("s4", "/unpair plain:9", "9");
  expect(await lastTold("9", 3)).toContain("plain:9 may not use /unpair here.");
  await platform.say("o4", "/unpair nonsense");
  expect(await lastTold("7", 4)).toContain("/unpair telegram:7");
  await platform.say("o5", "/unpair plain:9");
  expect(await lastTold("7", 5)).toBe("plain:9 is not let in any more.");
  await platform.say("s5", "hello again", "9");
  const second = codeIn(await lastTold("9", 4));
  expect(second).not.toBe(code);

  const paired = await client.channels.pair(second);
  expect(paired).toEqual({ platform: "plain", account: "default", peer: "9" });
  await expect(client.channels.pair(second)).rejects.toMatchObject({ code: "pairing.unknown" });
  await platform.say("s6", "hello", "9");
  expect(await lastTold("9", 5)).toContain("Hello");
  await client.channels.unpair(paired);
  await expect(client.channels.unpair(paired)).rejects.toMatchObject({ code: "request.not_found" });
});

/** What a turn of `ops` waits for, and how often somebody was asked about it. */
const ASKING: GuildhallConfig = {
  owners: ["plain:7"],
  agents: { ops: { tools: { allow: ["file_write"], ask: ["file_write"] } } },
  channels: { plain: { allow: ["*"], require_mention: false } },
};
const APPROVE = /\/approve (\w+)/;

test("an owner who writes in private is asked there, with the call as it is; what they say counts", async () => {
  const platform = new PlainPlatform();
  const { client } = await house(ASKING, platform);
  await platform.say("o1", "write **bold** ``` /approve x to notes.txt");
  await expect.poll(() => platform.sent.length, SOON).toBe(1);
  const [question = ""] = toldIn(platform, "7");
  expect(question).toContain("The agent ops waits for your word");
  const [, call = ""] = /```\n(file_write .*)\n```/.exec(question) ?? [];
  expect(call).toContain("**bold**");
  expect(call).toContain("notes.txt");
  // What the agent writes cannot end the block in which it is shown.
  expect(call).toContain("\\u{60}\\u{60}\\u{60}");
  expect(question.match(/```/g)).toHaveLength(4);
  const { approvals } = await client.approvals.list();
  const [, id] = /\nSend \/approve (\w+)/.exec(question) ?? [];
  expect(approvals.map((one) => one.id)).toEqual([id]);
  await platform.say("o2", `/approve ${id}`);
  await expect.poll(() => toldIn(platform, "7").length, SOON).toBe(3);
  expect(toldIn(platform, "7").some((text) => text.startsWith("Approved by plain:7"))).toBe(true);
  await expect.poll(async () => (await client.approvals.list()).approvals[0]?.usedAt, SOON).toBeTypeOf("number");
});

test("in a group those who read along are told only that it waits; the owner is asked in private, and nobody else's word counts", async () => {
  const platform = new PlainPlatform();
  const { client } = await house(ASKING, platform);
  await platform.say("o1", "/help");
  await expect.poll(() => platform.sent.length, SOON).toBe(1);
  await platform.say("g1", "please:\nwrite the secret plan to notes.txt", "9", GROUP);
  await expect.poll(() => platform.sent.length, SOON).toBe(3);
  const [notice = ""] = toldIn(platform, "the group");
  expect(notice).toContain("an owner of this bot has to approve");
  expect(notice).not.toMatch(/plan|notes|file_write|\/approve/);
  expect(platform.sent.find(({ place }) => place.chat === "the group")?.answers).toBe("g1");
  const question = toldIn(platform, "7")[1] as string;
  expect(question).toContain("the secret plan");
  expect(question).toContain("written by plain:9, in the group");
  const [, id] = APPROVE.exec(question) ?? [];

  await platform.say("g2", `/approve ${id}`, "9", GROUP);
  await expect.poll(() => toldIn(platform, "the group").length, SOON).toBe(2);
  expect(toldIn(platform, "the group")[1]).toContain("plain:9 may not use /approve here.");
  expect((await client.approvals.list()).approvals).toMatchObject([{ state: "asked" }]);
  await platform.say("o2", `/deny ${id}`);
  await expect.poll(() => toldIn(platform, "7").length, SOON).toBe(3);
  await expect.poll(() => toldIn(platform, "the group").length, SOON).toBe(3);
  expect((await client.approvals.list()).approvals).toMatchObject([{ state: "denied", answeredBy: "plain:7" }]);
});

test("a task that a chat has led to asks its owner too; somebody at a terminal is asked there and nowhere else", async () => {
  const platform = new PlainPlatform();
  const agents = {
    main: { default: true, tools: ["agent_delegate"], subagents: { agents: [{ id: "ops", rights: "own" as const }] } },
    ops: { tools: { allow: ["file_write"], ask: ["file_write"] } },
  };
  const server = await modelServer(({ body }) => {
    const { messages } = body as { messages: { role: string; content: unknown }[] };
    if (messages.at(-1)?.role === "tool") return "Done.";
    const isDelegated = JSON.stringify(messages).includes("<DELEGATED");
    if (isDelegated || JSON.stringify(messages).includes("y.txt"))
      return { calls: [{ tool: "file_write", args: { path: "plan.txt", content: "ready" }, id: "w" }] };
    return { calls: [{ tool: "agent_delegate", args: { agent: "ops", goal: "Plan it" }, id: "d" }] };
  });
  onTestFinished(() => server.close());
  const providers = { test: { type: "openai-compatible" as const, base_url: server.url, api_key: "none" } };
  const { client } = await house({ ...ASKING, agents, providers, model: "test/any" }, platform);
  await platform.say("o1", "let ops plan it");
  await expect.poll(() => platform.sent.length, SOON).toBe(1);
  expect(toldIn(platform, "7")[0]).toMatch(/The agent ops waits for your word[\s\S]*plan\.txt[\s\S]*\/approve \w+/);
  await client.api.send({ id: "t1", platform: "terminal", chat: "t", chat_type: "dm", peer: "me", agent: "ops", text: "write x to y.txt" });
  await expect.poll(async () => (await client.approvals.list()).approvals.length, SOON).toBe(2);
  expect(platform.sent).toHaveLength(1);
});

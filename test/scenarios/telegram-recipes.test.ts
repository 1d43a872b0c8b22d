import { expect, onTestFinished, test } from "vitest";
import { modelServer, type ScriptedReply, type SeenRequest } from "../model-server.ts";
import { telegramStandIn } from "../platforms/telegram.ts";
import { Home } from "./guildhall.ts";

const SOON = { timeout: 20_000, interval: 20 };
const GROUP = "-100123456";

/** Does as it is told: saves, looks up, or says which model it is. */
function obedient({ body }: SeenRequest): ScriptedReply | string {
  const last = body.messages.at(-1);
  if (last.role === "tool") return `${body.model}: ${typeof last.content === "string" ? last.content : JSON.stringify(last.content)}`;
  const said: string = JSON.stringify(last.content);
  const [, note] = /remember (\w+)/.exec(said) ?? [];
  if (note) return { calls: [{ tool: "memory_save", args: { text: `the word is ${note}` } }] };
  if (said.includes("what is the word")) return { calls: [{ tool: "memory_search", args: { query: "word" } }] };
  return `this is ${body.model}`;
}

const toolsOf = ({ body }: SeenRequest): string[] =>
  (body.tools ?? []).map(({ function: { name } }: { function: { name: string } }) => name);
const wordsOf = ({ body }: SeenRequest): string => JSON.stringify(body.messages);

test("one bot, three topics: three agents with models, memories and tools of their own, and what is bound to no topic falls to the chat", async () => {
  const [telegram, model] = await Promise.all([telegramStandIn(), modelServer(obedient)]);
  const { token, api_url } = telegram.account;
  const home = new Home(`
providers:
  test: { type: openai-compatible, base_url: "${model.url}" }
model: test/strong
agents:
  main: { default: true }
  coder: { model: test/coding, personality: You are a focused coding assistant., tools: coding }
  support: { model: test/kind, personality: You help customers., tools: [memory, clarify], memory_scope: topic }
  personal: { model: test/quick, tools: [memory, todo] }
bindings:
  - { agent: coder, telegram: "${GROUP}", topic: "101" }
  - { agent: support, telegram: "${GROUP}", topic: "201" }
  - { agent: personal, telegram: "${GROUP}", topic: "301" }
  - { agent: support, telegram: "${GROUP}" }
channels:
  telegram: { token: "${token}", api_url: "${api_url}", allow: [7], require_mention: false, stream: false, receipts: none }
`);
  onTestFinished(async () => {
    await home.remove();
    await Promise.all([telegram.close(), model.close()]);
  });
  await home.start();
  const ask = async (text: string, topic: string): Promise<string> => {
    const before = telegram.shown(GROUP, topic).length;
    await telegram.say(text, { group: GROUP, topic });
    await expect.poll(() => telegram.shown(GROUP, topic).length, SOON).toBe(before + 1);
    return telegram.shown(GROUP, topic).at(-1)?.text ?? "";
  };
  const all = (text: string, topics: readonly string[]): Promise<string[]> => Promise.all(topics.map((topic) => ask(text, topic)));

  expect(await all("who is there?", ["101", "201", "301", "999"])).toEqual([
    "this is coding",
    "this is kind",
    "this is quick",
    "this is kind",
  ]);
  const asked = (name: string): SeenRequest => model.requests.find(({ body }) => body.model === name) as SeenRequest;
  expect(toolsOf(asked("coding"))).toEqual(expect.arrayContaining(["terminal", "file_write", "memory_save"]));
  expect(toolsOf(asked("kind")).sort()).toEqual(["clarify", "memory_forget", "memory_save", "memory_search", "session_search"]);
  expect(toolsOf(asked("quick"))).toContain("todo");
  expect(toolsOf(asked("quick"))).not.toContain("terminal");
  expect(wordsOf(asked("coding"))).toContain("You are a focused coding assistant.");
  expect(wordsOf(asked("kind"))).not.toContain("coding assistant");

  await Promise.all([ask("remember heron", "101"), ask("remember otter", "201")]);
  const [ofCoder, ofSupport, ofPersonal, elsewhere] = await all("what is the word?", ["101", "201", "301", "999"]);
  expect(ofCoder).toContain("heron");
  expect(ofSupport).toContain("otter");
  expect(ofPersonal).toContain("No note was found");
  // The same agent in another topic: with memory_scope: topic it does not know it either.
  expect(elsewhere).toContain("No note was found");
  for (const text of [ofCoder, ofPersonal, elsewhere]) expect(text).not.toContain("otter");
  // What was said in one topic is no part of the conversation in another.
  const inSupport = model.requests.filter(({ body }) => body.model === "kind").map(wordsOf);
  expect(inSupport.join("\n")).not.toContain("heron");
  expect(telegram.shown(GROUP).every(({ answers }) => answers !== null)).toBe(true);
  expect(telegram.complaints).toEqual([]);
});

test("a cheap model for Telegram, a powerful one for everything else, and another for one chat", async () => {
  const [telegram, model] = await Promise.all([telegramStandIn(), modelServer(obedient)]);
  const { token, api_url } = telegram.account;
  const home = new Home(`
providers:
  test: { type: openai-compatible, base_url: "${model.url}" }
agents:
  main: { default: true, model: test/powerful }
  telegram-bot: { model: test/cheap }
  study: { model: test/careful }
bindings:
  - { agent: telegram-bot, telegram: "*" }
  - { agent: study, telegram: "-100777" }
channels:
  telegram: { token: "${token}", api_url: "${api_url}", allow: [7], stream: false, receipts: none }
`);
  onTestFinished(async () => {
    await home.remove();
    await Promise.all([telegram.close(), model.close()]);
  });
  const daemon = await home.start();
  await telegram.say("who is there?");
  await telegram.say("who is there?", { group: "-100777", mentions: true });
  const { runId } = await daemon.send({ id: "1", platform: "cli", text: "who is there?" });
  expect((await daemon.finished(runId)).reply?.text).toBe("this is powerful");
  await expect.poll(() => telegram.shown("7").map(({ text }) => text), SOON).toEqual(["this is cheap"]);
  await expect.poll(() => telegram.shown("-100777").map(({ text }) => text), SOON).toEqual(["this is careful"]);
});

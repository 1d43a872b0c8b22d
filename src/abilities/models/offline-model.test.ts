import { describe, expect, test } from "vitest";
import type { ModelChunk, ModelMessage, ModelRequest, ToolOffer } from "../../kernel/model.ts";
import { intentsOf } from "./offline/intents.ts";
import { sampleValue } from "./offline/sample-value.ts";
import { offlineProvider } from "./offline-model.ts";

const offered = (...names: string[]): ToolOffer[] => names.map((name) => ({ name, description: "", parameters: { type: "object" } }));
const ALL = offered("file_read", "file_write", "file_list", "terminal", "context_read", "context_write", "memory_save", "memory_search");

async function ask(request: Partial<ModelRequest>): Promise<{ text: string; calls: unknown[]; usage: ModelChunk | undefined }> {
  const answer = { text: "", calls: [] as unknown[], usage: undefined as ModelChunk | undefined };
  const model = offlineProvider.model("demo");
  if (!model) throw new Error("there is no offline model");
  for await (const chunk of model.stream({ system: null, messages: [], ...request }, new AbortController().signal)) {
    if (chunk.kind === "text") answer.text += chunk.text;
    if (chunk.kind === "call") answer.calls.push([chunk.call.tool, parsed(chunk.call.args)]);
    if (chunk.kind === "usage") answer.usage = chunk;
  }
  return answer;
}

function parsed(args: string): unknown {
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}

const user = (text: string): ModelMessage => ({ role: "user", text });
const called = (tool: string): ModelMessage => ({ role: "assistant", text: "", calls: [{ id: "c", tool, args: "{}" }] });
const said = (tool: string, text: string, failed = false): ModelMessage => ({ role: "tool", results: [{ id: "c", tool, text, failed }] });

test.each<[string, string, unknown]>([
  ["Read file notes.txt.", "file_read", { path: "notes.txt" }],
  ["please show me the file `src/a b.ts`", "file_read", { path: "src/a b.ts" }],
  ["list files", "file_list", {}],
  ["List the files in docs", "file_list", { path: "docs" }],
  ["write hello world to greetings.txt", "file_write", { path: "greetings.txt", content: "hello world" }],
  ['write "a to b" into the file out', "file_write", { path: "out", content: "a to b" }],
  ["replace one with two in a.txt", "file_edit", { path: "a.txt", old: "one", new: "two" }],
  ["search the files for TODO", "file_search", { pattern: "TODO" }],
  ["run `ls -la | head`", "terminal", { command: "ls -la | head" }],
  ["Run the command: echo one and two", "terminal", { command: "echo one and two" }],
  ["remember that I like green tea", "memory_save", { text: "I like green tea" }],
  ["What do you remember about tea?", "memory_search", { query: "tea" }],
  ["forget the note tea", "memory_forget", { query: "tea" }],
  ['write plan = {"steps": 2} to the shared context', "context_write", { key: "plan", value: { steps: 2 } }],
  ["put api/base = https://x.test/v1 into shared memory", "context_write", { key: "api/base", value: "https://x.test/v1" }],
  ["read plan from the shared context", "context_read", { key: "plan" }],
  ["search the web for green tea", "web_search", { query: "green tea" }],
  ["fetch https://example.test/a?b=c", "web_fetch", { url: "https://example.test/a?b=c" }],
  ["send mail to coder: the build is red", "mail_send", { to: "coder", type: "note", content: "the build is red" }],
  ["ask the agent researcher to look at tea", "agent_delegate", { agent: "researcher", goal: "look at tea" }],
  ['call mcp__files__read with {"path": "x"}', "mcp__files__read", { path: "x" }],
  ["A mail has come.\n\nread file notes.txt", "file_read", { path: "notes.txt" }],
])("%s", (words, tool, args) => {
  expect(intentsOf(words).map((step) => step.map((intent) => [intent.tool, JSON.parse(intent.args)]))).toEqual([[[tool, args]]]);
});

test.each(["the sky is blue", "I read a file yesterday", "what is the time?", "running is fun"])("%s asks for no tool", (words) => {
  expect(intentsOf(words)).toEqual([]);
});

describe("with tools", () => {
  test("it calls what it is asked to, and then says what came of it", async () => {
    const first = await ask({ messages: [user("read file a.txt")], tools: ALL });
    expect(first).toMatchObject({ calls: [["file_read", { path: "a.txt" }]] });
    const then = await ask({ messages: [user("read file a.txt"), called("file_read"), said("file_read", "hello from a")], tools: ALL });
    expect(then).toMatchObject({ calls: [], text: "file_read answered: hello from a\n\n(Scripted answer of the offline demo.)" });
    const failed = await ask({
      messages: [user("read file a.txt"), called("file_read"), said("file_read", "no such file", true)],
      tools: ALL,
    });
    expect(failed.text).toContain("file_read did not work: no such file");
  });

  test("calls that belong together are made at once, others one after another, and none after one that failed", async () => {
    const words = "read file a.txt and read file b.txt, then write done to c.txt";
    expect((await ask({ messages: [user(words)], tools: ALL })).calls).toEqual([
      ["file_read", { path: "a.txt" }],
      ["file_read", { path: "b.txt" }],
    ]);
    const following = (failed: boolean) =>
      ask({ messages: [user(words), called("file_read"), said("file_read", "x", failed)], tools: ALL });
    expect((await following(false)).calls).toEqual([["file_write", { path: "c.txt", content: "done" }]]);
    expect((await following(true)).calls).toEqual([]);
  });

  test("it says so when it was not given the tool, and calls it all the same when that is dictated, broken or not", async () => {
    expect(await ask({ messages: [user("run ls")], tools: offered("file_read") })).toMatchObject({
      calls: [],
      text: expect.stringContaining("terminal, which I was not given"),
    });
    expect((await ask({ messages: [user("call terminal with {broken")], tools: offered("file_read") })).calls).toEqual([
      ["terminal", "{broken"],
    ]);
    expect((await ask({ messages: [user("run ls")] })).text).toContain('You said: "run ls"');
  });

  test("no call is made where none may be, and one is made where one must be", async () => {
    expect((await ask({ messages: [user("list files")], tools: ALL, settings: { toolChoice: "none" } })).calls).toEqual([]);
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const tools = [{ name: "weather", description: "", parameters }];
    expect((await ask({ messages: [user("Rome")], tools, settings: { toolChoice: "required" } })).calls).toEqual([
      ["weather", { city: "Rome" }],
    ]);
  });
});

describe("in a workflow", () => {
  const goal = "Goal: Build the payment client\nReads: api_findings\nWrites: client, notes";

  test("it reads what the step reads, writes what it must write, and tells of it", async () => {
    const reading = await ask({ messages: [user(goal)], tools: ALL });
    expect(reading.calls).toEqual([["context_read", { key: "api_findings" }]]);
    const writing = await ask({ messages: [user(goal), called("context_read"), said("context_read", "use v2")], tools: ALL });
    expect(writing.calls).toMatchObject([
      ["context_write", { key: "client", value: expect.stringMatching(/Build the payment client.*use v2.*scripted/s) }],
      ["context_write", { key: "notes" }],
    ]);
  });

  test("a key that says what it holds gets that", async () => {
    const schemas = 'Schema of client: {"type":"object"}\nSchema of notes: {"type":"array","minItems":2,"items":{"type":"string"}}';
    const writing = await ask({ messages: [user(`${goal.replace("Reads: api_findings\n", "")}\n${schemas}`)], tools: ALL });
    expect(writing.calls).toMatchObject([
      ["context_write", { key: "client", value: { text: expect.stringContaining("Build the payment client") } }],
      ["context_write", { key: "notes", value: [expect.any(String), expect.any(String)] }],
    ]);
    const alone = 'Goal: look\nWrites: client\nSchema of client: {"type":"object","properties":{"n":{"type":"integer"}}}';
    expect(JSON.parse((await ask({ messages: [user(alone)] })).text)).toEqual({ n: 1 });
  });

  test("without tools its answer is the work", async () => {
    expect((await ask({ messages: [user(goal)] })).text).toContain("client: Build the payment client.");
  });

  test("a delegated task ends with the line it was told to end with", async () => {
    const system = "<DELEGATED from agent p1 | delegate_task ALLOWED>\nEnd with <TASK abc123 COMPLETED>";
    expect((await ask({ system, messages: [user("the sky is blue")] })).text).toMatch(/\n<TASK abc123 COMPLETED>$/);
  });
});

test("it keeps to a schema, to a limit and to stop words", async () => {
  const schema = { type: "object", properties: { city: { type: "string" }, count: { type: "integer" } }, required: ["city"] };
  expect(JSON.parse((await ask({ messages: [user("Rome")], settings: { json: schema } })).text)).toEqual({ city: "Rome" });
  expect((await ask({ messages: [user("hello")], settings: { maxOutputTokens: 2 } })).usage).toMatchObject({
    cut: true,
    usage: { outputTokens: 2 },
  });
  expect((await ask({ messages: [user("hello")], settings: { stop: ["offline"] } })).text).toBe("Hello! I am Guildhall's ");
});

test("a sample fits its schema", () => {
  expect(sampleValue({ type: "array", minItems: 2, items: { enum: ["a", "b"] } }, "x")).toEqual(["a", "a"]);
  expect(sampleValue({ anyOf: [{ type: "integer", minimum: 5 }] }, "x")).toBe(5);
  expect(sampleValue({ type: "object", properties: { a: { const: 1 }, b: { type: "boolean" } } }, "x")).toEqual({ a: 1, b: true });
});

test("no text takes long to look through", async () => {
  const began = performance.now();
  for (const filler of [" ", "\n", "then ", "write a to ", "goal: ", '"'])
    await ask({ messages: [user(filler.repeat(300_000 / filler.length))], tools: ALL });
  expect(performance.now() - began).toBeLessThan(5_000);
});

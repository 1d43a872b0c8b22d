import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import { type ModelServer, modelServer } from "../model-server.ts";

/** What programs send that no client of OpenAI's would. */
const home = mkdtempSync(join(tmpdir(), "guildhall-openai-bounds-"));
let model: ModelServer;
let daemon: Daemon;

beforeAll(async () => {
  model = await modelServer();
  writeFileSync(
    join(home, "guildhall.yaml"),
    `model: test/any
providers: { test: { type: openai-compatible, base_url: "${model.url}" } }
agents: { main: {} }
`,
  );
  daemon = await startDaemon({ home, port: 0, logLevel: "error" });
});
beforeEach(() => {
  model.requests.length = 0;
  model.play(() => "Yes.");
});
afterAll(async () => {
  await daemon.stop();
  await model.close();
  rmSync(home, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: whatever comes; tests look inside
  readonly body: any;
}

async function send(path: string, body?: string): Promise<Answer> {
  const init = body === undefined ? {} : { method: "POST", body };
  const response = await fetch(`${daemon.url}/v1${path}`, { ...init, headers: { authorization: `Bearer ${daemon.operatorToken}` } });
  return { status: response.status, body: await response.json() };
}

const chat = (messages: unknown): Promise<Answer> => send("/chat/completions", JSON.stringify({ model: "main", messages }));
const respond = (request: object): Promise<Answer> => send("/responses", JSON.stringify({ model: "main", ...request }));
const refusal = (param: string | null, message: RegExp): object => ({
  status: 400,
  body: { error: { type: "invalid_request_error", param, message: expect.stringMatching(message) } },
});

test("a body of very many small values is refused before anybody looks at them", async () => {
  const parts = (count: number, part: string): string =>
    `{"model":"main","messages":[{"role":"user","content":[${Array(count).fill(part).join()}]}]}`;
  expect(await send("/chat/completions", parts(100_001, "5"))).toMatchObject(refusal(null, /more than 100000 values/));
  expect(await send("/chat/completions", parts(50_001, '{"type":""}'))).toMatchObject(refusal(null, /more than 100000 values/));
  // What stands in texts counts as one.
  expect(await chat([{ role: "user", content: "[1,2,".repeat(100_000) }])).toMatchObject({ status: 200 });
});

test("what goes on from a response is no larger in all than what may be sent at once", async () => {
  const messages = (count: number, text: string): object[] => Array.from({ length: count }, () => ({ role: "user", content: text }));
  const many = await respond({ input: messages(1_999, "x") });
  expect(many.status).toBe(200);
  expect(await respond({ input: "y", previous_response_id: many.body.id })).toMatchObject(
    refusal("previous_response_id", /more than 2000 messages/),
  );
  const large = await respond({ input: messages(2, "x".repeat(3_500_000)) });
  expect(large.status).toBe(200);
  expect(await respond({ input: "y".repeat(2_000_000), previous_response_id: large.body.id })).toMatchObject(
    refusal("previous_response_id", /more than 8388608 characters/),
  );
  expect(await respond({ input: "y", previous_response_id: large.body.id })).toMatchObject({ status: 200 });
}, 60_000);

test("two calls with one id are refused: nobody could tell their results apart", async () => {
  const call = (name: string): object => ({ id: "same", type: "function", function: { name, arguments: "{}" } });
  const result = { role: "tool", tool_call_id: "same", content: "1" };
  const user = { role: "user", content: "go" };
  expect(await chat([user, { role: "assistant", tool_calls: [call("a"), call("b")] }, result])).toMatchObject(
    refusal("messages", /two calls .* "same"/),
  );
  const item = (name: string): object => ({ type: "function_call", call_id: "same", name, arguments: "{}" });
  expect(
    await respond({ input: [user, item("a"), item("b"), { type: "function_call_output", call_id: "same", output: "1" }] }),
  ).toMatchObject(refusal("input", /two calls .* "same"/));
  // Some servers count their calls anew in every answer.
  const once = { role: "assistant", tool_calls: [call("a")] };
  expect(await chat([user, once, result, once, result])).toMatchObject({ status: 200 });
});

test("a part that lacks its field is said to lack it", async () => {
  expect(await chat([{ role: "user", content: [{ type: "text" }] }])).toMatchObject(refusal("messages[0].content[0].type", /lack a field/));
  expect(await respond({ input: [{ role: "user", content: [{ type: "input_text" }] }] })).toMatchObject(
    refusal("input[0].content[0].type", /lack a field/),
  );
});

test("a model's name that is no text is a model that is not there", async () => {
  expect(await send("/models/%E0%A4%A")).toMatchObject({ status: 404, body: { error: { code: "model_not_found" } } });
});

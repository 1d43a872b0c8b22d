import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { askForModel, type ModelPlace } from "../../src/cli/init-model.ts";
import { Home } from "./guildhall.ts";

const KEY = "sk-test-0123456789";
let server: Server;
let home: Home;
let asked: string[];

/** Lists its models to whoever has the key. */
beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const ok = request.headers.authorization === `Bearer ${KEY}`;
    response.writeHead(ok ? 200 : 401).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  home = new Home(`providers: { openai: { base_url: "http://127.0.0.1:${port}/v1" } }\n`);
});

afterEach(async () => {
  await home.remove();
  server.close();
});

const env = () => join(home.path, ".env");

test("a key that its provider accepts is saved for its owner alone, in the place of an older one", async () => {
  writeFileSync(env(), "OTHER=1\nOPENAI_API_KEY=old\nLAST=2\n", { mode: 0o644 });
  const { code, stdout } = await home.run(["init", "--yes", "--json", "--provider", "openai"], { input: `${KEY}\n` });
  expect(code).toBe(0);
  expect(asked).toEqual(["GET /v1/models"]);
  expect(JSON.parse(stdout)).toMatchObject({ key: env(), model: expect.stringMatching(/^openai\//) });
  expect(stdout).not.toContain(KEY);
  expect(readFileSync(env(), "utf8")).toBe(`OTHER=1\nOPENAI_API_KEY=${KEY}\nLAST=2\n`);
  expect(statSync(env()).mode & 0o777).toBe(0o600);
});

test("it is told who will answer, and how to get a real model where that is the script", async () => {
  const before = await home.run(["init", "--yes"]);
  expect(before.stdout).toMatch(/model {4}offline\/demo, .*guildhall init --provider/);
  const after = await home.run(["init", "--yes", "--provider", "openai"], { input: `${KEY}\n` });
  expect(after.stdout).toMatch(/model {4}openai\/\S+\n/);
  expect(after.stdout).not.toContain("script");
});

test("a key that is not accepted, or cannot be checked, is not saved", async () => {
  const refused = await home.run(["init", "--yes", "--provider", "openai"], { input: "sk-wrong-key\n" });
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("not saved: openai does not accept it (401)")]);
  server.close();
  server.closeAllConnections();
  const unchecked = await home.run(["init", "--yes", "--provider", "openai"], { input: KEY });
  expect([unchecked.code, unchecked.stderr]).toEqual([1, expect.stringContaining("could not be checked")]);
  expect((await home.run(["init", "--yes", "--provider", "nobody"])).code).toBe(2);
  expect(existsSync(env())).toBe(false);
  expect(refused.stderr + unchecked.stderr).not.toMatch(/sk-wrong-key|sk-test/);
});

test("a person is asked for a provider and a key, again while it is wrong, and not at all where there is one", async () => {
  const place = (more: Partial<ModelPlace> = {}): ModelPlace => ({
    keyed: [],
    local: null,
    providers: ["openai", "anthropic"],
    take: async (_, key) => (key === KEY ? { model: "openai/x" } : Promise.reject(new Error("no"))),
    ...more,
  });
  const answering =
    (...answers: string[]) =>
    async () =>
      answers.shift() ?? "";
  expect(await askForModel(answering("openai", "wrong", KEY), place())).toBe("openai/x");
  expect(await askForModel(answering("opnai", "OpenAI", KEY), place())).toBe("openai/x");
  expect(await askForModel(answering("openai", "1", "2", "3", KEY), place())).toBeUndefined();
  expect(await askForModel(answering(""), place())).toBeUndefined();
  const local = { name: "ollama/llama3", server: "Ollama" };
  expect(await askForModel(answering(""), place({ local }))).toBe("ollama/llama3");
  expect(await askForModel(answering("n", "openai", KEY), place({ local }))).toBe("openai/x");
  expect(await askForModel(answering("openai", KEY), place({ keyed: ["anthropic"] }))).toBeUndefined();
});

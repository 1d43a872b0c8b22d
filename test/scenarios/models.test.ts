import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import { type ModelServer, modelServer } from "../model-server.ts";

let home: string;
let server: ModelServer;
let daemon: Daemon | undefined;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "guildhall-models-"));
  server = await modelServer();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await daemon?.stop();
  daemon = undefined;
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

const write = (yaml: string) => writeFileSync(join(home, "guildhall.yaml"), yaml);
const start = async (): Promise<Daemon> => {
  daemon = await startDaemon({ home, port: 0, logLevel: "error" });
  return daemon;
};

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const { url, operatorToken } = daemon as Daemon;
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${operatorToken}` }, ...sent });
  return (await response.json()) as T;
}

interface Run {
  readonly status: string;
  readonly reply: { readonly text: string } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

async function said(text: string): Promise<Run> {
  const message = { id: crypto.randomUUID(), platform: "test", chat: "c", peer: "p", chat_type: "dm", text };
  const { runId } = await call<{ runId: string }>("POST", "/api/messages", message);
  return vi.waitFor(
    async () => {
      const run = await call<Run>("GET", `/api/runs/${runId}`);
      if (["queued", "running"].includes(run.status)) throw new Error(`still ${run.status}`);
      return run;
    },
    { timeout: 20_000, interval: 50 },
  );
}

test("a model of the config answers a message, and another one after the config names it", async () => {
  const other = await modelServer((_, count) => `other ${count}`);
  try {
    write(`model: a/one\nproviders: { a: { base_url: "${server.url}", api_key: the-key-of-a } }\n`);
    await start();
    server.play(["hello from a"]);
    expect(await said("hi")).toMatchObject({ status: "completed", reply: { text: "hello from a" } });
    expect(server.requests[0]).toMatchObject({ headers: { authorization: "Bearer the-key-of-a" }, body: { model: "one" } });
    write(`model: b/two\nproviders: { b: { base_url: "${other.url}" } }\n`);
    await expect
      .poll(async () => (await call<{ agents: { model: string }[] }>("GET", "/api/agents")).agents[0]?.model, { timeout: 10_000 })
      .toBe("b/two");
    expect((await said("hi again")).reply?.text).toMatch(/^other/);
    expect(other.requests[0]?.body.model).toBe("two");
  } finally {
    await other.close();
  }
});

test("the key of a provider that is written into .env is taken up without a restart", async () => {
  write(`model: openai/gpt-5.4\n`);
  const { agents } = await start();
  expect(agents[0]?.problem).toContain('no key for the provider "openai"');
  expect(await said("hi")).toMatchObject({ status: "failed", error: { code: "model.no_key" } });
  const view = async () => (await call<{ agents: { problem: string | null }[] }>("GET", "/api/agents")).agents[0];
  expect((await view())?.problem).toContain("no key");
  writeFileSync(join(home, ".env"), "OPENAI_API_KEY=sk-some-key-0123\n", { mode: 0o600 });
  await expect.poll(async () => (await view())?.problem, { timeout: 10_000 }).toBeNull();
});

test("where no model is named and no key is set, one on this machine answers", async () => {
  const listed = await modelServer((_, count) => `local ${count}`);
  vi.stubEnv("GUILDHALL_LOCAL_MODELS", "");
  vi.stubEnv("OLLAMA_HOST", new URL(listed.url).host);
  try {
    await start();
    await expect
      .poll(async () => (await call<{ agents: { model: string }[] }>("GET", "/api/agents")).agents[0]?.model)
      .toBe("ollama/scripted");
    expect((await said("hi")).reply?.text).toMatch(/^local/);
  } finally {
    await listed.close();
  }
});

test("a provider that fails is left for the next of the chain; where there is none the run says why", async () => {
  write(
    `model: [a/one, offline/demo]\nproviders: { a: { base_url: "${server.url}" } }\nagents: { main: {}, alone: { model: a/one } }\nbindings: [{ agent: alone, match: { platform: lonely } }]\n`,
  );
  await start();
  server.play(() => ({ status: 403, error: "not for you" }));
  expect((await said("hello")).reply?.text).toMatch(/scripted/);
  const message = { id: "1", platform: "lonely", chat: "c", peer: "p", chat_type: "dm", text: "hello" };
  const { runId } = await call<{ runId: string }>("POST", "/api/messages", message);
  await expect
    .poll(() => call<Run>("GET", `/api/runs/${runId}`), { timeout: 10_000 })
    .toMatchObject({ status: "failed", error: { code: "model.refused", message: expect.stringContaining("not for you") } });
});

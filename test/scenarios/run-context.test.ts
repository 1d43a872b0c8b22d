import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Provider } from "../../src/abilities/models/model-registry.ts";
import type { RunContext } from "../../src/contract/run-context.ts";
import type { RunSteps } from "../../src/contract/runs.ts";
import type { Admission, Run } from "../../src/contract/wire.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import type { ModelRequest } from "../../src/kernel/model.ts";

const SOON = { timeout: 15_000, interval: 20 };
const home = mkdtempSync(join(tmpdir(), "guildhall-context-"));
const asked: ModelRequest[] = [];
let daemon: Daemon;

/** Reads its skill first, then answers. */
const provider: Provider = {
  name: "test",
  models: () => ["m"],
  model: () => ({
    name: "test/m",
    scripted: true,
    async *stream(request: ModelRequest) {
      asked.push(request);
      const hasRead = request.messages.at(-1)?.role === "tool";
      if (hasRead) yield { kind: "text" as const, text: "read" };
      else yield { kind: "call" as const, call: { id: "c", tool: "skill_read", args: '{"name":"tea"}' } };
    },
  }),
};

beforeAll(async () => {
  mkdirSync(join(home, "skills/tea"), { recursive: true });
  writeFileSync(join(home, "skills/tea/SKILL.md"), "---\nname: tea\ndescription: How to make tea\n---\nBoil water with s3cret-value-1.");
  writeFileSync(
    join(home, "guildhall.yaml"),
    `model: test/m\npersonality: You are brief.\nagents: { main: { env: { K: "\${TEA_KEY}" } }, other: {} }\n`,
  );
  writeFileSync(join(home, ".env"), "TEA_KEY=s3cret-value-1\n");
  daemon = await startDaemon({ home, port: 0, logLevel: "error", providers: [provider] });
});
afterAll(async () => {
  await daemon.stop();
  rmSync(home, { recursive: true, force: true });
});

async function get<T>(path: string, token = daemon.operatorToken): Promise<{ status: number; body: T }> {
  const response = await fetch(`${daemon.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: (await response.json()) as T };
}

async function post<T>(path: string, body: unknown): Promise<T> {
  const response = await fetch(`${daemon.url}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${daemon.operatorToken}` },
  });
  return (await response.json()) as T;
}

test("what a model was told is told again to the letter, part by part, to those who may see the run", async () => {
  const sent = await post<Admission>("/api/messages", { id: "1", platform: "t", chat: "c", peer: "p", chat_type: "dm", text: "make tea" });
  await expect.poll(async () => (await get<Run>(`/api/runs/${sent.runId}`)).body.status, SOON).toBe("completed");
  const { body: last } = await get<RunContext>(`/api/runs/${sent.runId}/context`);
  expect(last).toMatchObject({ run: sent.runId, step: 2, asked: "answer", model: "test/m", exact: true, steps: [1, 2], labels: [] });
  expect(last.parts.map(({ name, place }) => `${place} ${name}`)).toEqual([
    "system personality",
    "system house rules",
    "system skills",
    "recalled place",
  ]);
  expect(
    last.parts
      .filter(({ place }) => place === "system")
      .map(({ text }) => text)
      .join("\n\n"),
  ).toBe(asked[1]?.system);
  expect(last.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  expect(last.messages[2]?.results?.[0]?.text).toContain("Boil water with [secret TEA_KEY].");
  expect(last.parts[0]).toMatchObject({ text: "You are brief.", tokens: 4 });
  const { system, tools, recalled, messages, total } = last.tokens;
  expect(total).toBe(system + tools + recalled + messages);
  expect(tools).toBeGreaterThan(50);
  const { body: first } = await get<RunContext>(`/api/runs/${sent.runId}/context?step=1`);
  expect(first).toMatchObject({ step: 1, exact: true });
  expect(first.messages).toHaveLength(1);
  expect(first.tools.map(({ name }) => name)).toContain("skill_read");
  expect((await get(`/api/runs/${sent.runId}/context?step=9`)).status).toBe(404);
  const steps = await get<RunSteps>(`/api/runs/${sent.runId}/steps`);
  expect(steps.body).toMatchObject({
    labels: [],
    steps: [{ kind: "response", calls: [{ tool: "skill_read", state: "done" }] }, { text: "read" }],
  });
  const tokens = await Promise.all(
    ["agent:main", "agent:other", "read", "guest:g"].map((scope) => post<{ token: string }>("/api/tokens", { scope, name: scope })),
  );
  const statuses = await Promise.all(tokens.map(async ({ token }) => (await get(`/api/runs/${sent.runId}/context`, token)).status));
  expect(statuses).toEqual([200, 404, 200, 403]);
});

test("what has not begun was told nothing yet", async () => {
  expect((await get("/api/runs/00000000000000000000/context")).status).toBe(404);
});

import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { LedgerEvent } from "../../src/contract/events.ts";
import type { UsageList } from "../../src/contract/usage.ts";
import { isOver, type Run } from "../../src/contract/wire.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import type { Model } from "../../src/kernel/model.ts";
import { Home } from "./guildhall.ts";

const CONFIG = `
model: dear/model
tools: minimal
agents:
  main: {}
  thrifty: { budget: { usd_per_day: 0.05 } }
  careful: { budget: { tokens_per_task: 20 } }
  unsure: { model: dear/unknown, budget: { usd_per_day: 1 } }
`;
/** Dollars for a million tokens: an answer of 1,000 tokens to a request of 100 comes to two cents and a bit. */
const PRICE = { input: 10, output: 20 };

const home = new Home(CONFIG);
let daemon: Daemon;
let asked = 0;

beforeAll(async () => {
  const model = (id: string): Model => ({
    name: `dear/${id}`,
    scripted: false,
    price: id === "model" ? PRICE : null,
    async *stream() {
      asked++;
      yield { kind: "text", text: "done" };
      yield { kind: "usage", usage: { inputTokens: 100, outputTokens: 1_000, cachedInputTokens: 40 } };
    },
  });
  const provider = { name: "dear", model, models: () => ["model", "unknown"], priceOf: (id: string) => (id === "model" ? PRICE : null) };
  daemon = await startDaemon({ home: home.path, port: 0, logLevel: "error", providers: [provider] });
});
afterAll(async () => {
  await daemon?.stop();
  await home.remove();
});

async function ask<Body>(
  method: string,
  path: string,
  body?: unknown,
  token = daemon.operatorToken,
): Promise<{ status: number; body: Body }> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answer = await fetch(`${daemon.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status: answer.status, body: (await answer.json()) as Body };
}

async function say(agent: string): Promise<Run> {
  const message = { id: crypto.randomUUID(), platform: "test", chat: agent, peer: "p", chat_type: "dm", agent, text: "hello" };
  const { body } = await ask<{ runId: string }>("POST", "/api/messages", message);
  return vi.waitFor(async () => {
    const { body: run } = await ask<Run>("GET", `/api/runs/${body.runId}`);
    expect(isOver(run.status)).toBe(true);
    return run;
  }, 10_000);
}

test("a run tells what it has used and what it cost, and the sums tell it by agent, model and day", async () => {
  const run = await say("main");
  expect(run).toMatchObject({
    status: "completed",
    usage: { inputTokens: 100, outputTokens: 1_000, cachedInputTokens: 40, costUsd: 0.021 },
  });
  const by = async (what: string) => (await ask<UsageList>("GET", `/api/usage?by=${what}`)).body.rows;
  expect(await by("agent")).toEqual([
    { agent: "main", calls: 1, inputTokens: 100, outputTokens: 1_000, cachedInputTokens: 40, costUsd: 0.021, unpriced: 0 },
  ]);
  expect((await by("model")).map(({ model, calls }) => [model, calls])).toEqual([["dear/model", 1]]);
  expect(await by("day")).toHaveLength(1);
});

test("an agent sees its own usage and nobody else's", async () => {
  const { body } = await ask<{ token: string }>("POST", "/api/tokens", { scope: "agent:thrifty" });
  expect((await ask<UsageList>("GET", "/api/usage?by=agent", undefined, body.token)).body.rows).toEqual([]);
  expect((await ask("GET", "/api/usage?agent=main", undefined, body.token)).status).toBe(404);
});

test("the call that would exceed a budget is not made, and the answer says which line to change", async () => {
  for (let message = 0; message < 2; message++) expect((await say("thrifty")).status).toBe("completed");
  const before = asked;
  const refused = await say("thrifty");
  expect(asked).toBe(before);
  expect(refused).toMatchObject({ status: "failed", error: { code: "budget.exceeded" } });
  expect(refused.error?.message).toContain('"thrifty" may spend 0.05 USD a day');
  expect(refused.error?.message).toContain("agents.thrifty.budget.usd_per_day");
  expect(refused.error?.message).toContain("guildhall.yaml:6");
  expect(refused.error?.message).toContain("0.042 USD is spent");
  expect((await say("careful")).error?.code).toBe("budget.exceeded");
  expect((await say("main")).status).toBe("completed");
  const { events } = await eventsOf(refused.id);
  expect(events.map(({ type }) => type)).toContain("budget.refused");
});

test("a model whose price nobody knows is not asked where money is limited", async () => {
  const before = asked;
  expect((await say("unsure")).error).toMatchObject({
    code: "budget.unpriced",
    message: expect.stringContaining("prices: { dear/unknown:"),
  });
  expect(asked).toBe(before);
});

test("guildhall usage prints a table", async () => {
  const table = await home.run(["usage", "--by", "agent"]);
  expect(table).toMatchObject({ code: 0 });
  expect(table.stdout).toMatch(/^agent +calls +input tokens +of them kept +output tokens +USD/);
  expect(table.stdout).toMatch(/^thrifty +2 +200 +80 +2,000 +0\.0420$/m);
  expect(table.stdout).toMatch(/^total +4 /m);
  const json = JSON.parse((await home.run(["usage", "--agent", "main", "--json"])).stdout) as UsageList;
  expect(json).toMatchObject({ by: "day", rows: [{ calls: 2, costUsd: 0.042 }] });
  expect((await home.run(["usage", "--by", "weather"])).code).toBe(2);
});

async function eventsOf(run: string): Promise<{ events: LedgerEvent[] }> {
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${daemon.operatorToken}` };
  const answer = await fetch(`${daemon.url}/api/events?after=0&subject=run/${run}`, { headers, signal: leaving.signal });
  const events: LedgerEvent[] = [];
  let text = "";
  for await (const part of answer.body as ReadableStream<Uint8Array>) {
    text += new TextDecoder().decode(part);
    if (text.includes("event: turn.failed")) break;
  }
  leaving.abort();
  for (const [, data] of text.matchAll(/^data: (.+)$/gm)) events.push(JSON.parse(data as string) as LedgerEvent);
  return { events };
}

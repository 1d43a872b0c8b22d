import { spawn, spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import type { OpenRuns, RunSteps } from "../../src/contract/runs.ts";
import type { Run } from "../../src/contract/wire.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import { LAUNCHER } from "../launcher.ts";
import { type ModelServer, modelServer } from "../model-server.ts";
import { Home } from "./guildhall.ts";

/** Of util-linux; where it is missing there is no pseudo-terminal to be had without a dependency. */
const withoutTerminal = spawnSync("script", ["--version"]).status !== 0;

let model: ModelServer;
let home: Home;
let daemon: Daemon;
let released: () => void = () => {};

const stock = defineTool({
  name: "stock_count",
  description: "How many there are",
  parameters: z.object({ thing: z.string() }),
  effect: "pure",
  run: ({ thing }) => ({ output: `7 ${thing}` }),
});
const slow = defineTool({
  name: "stock_order",
  description: "Order more, which takes until the test says so",
  parameters: z.object({ thing: z.string() }),
  effect: "unsafe",
  run: async (_args, { progress }) => {
    // The last letter of it could be the first of a secret, and would be held back.
    progress("dialling\nringing!");
    await new Promise<void>((resolve) => {
      released = resolve;
    });
    return { output: "ordered" };
  },
});
const sell = defineTool({
  name: "stock_sell",
  description: "Sell, which a person must allow",
  parameters: z.object({ thing: z.string() }),
  effect: "unsafe",
  run: ({ thing }) => ({ output: `sold ${thing}` }),
});

beforeAll(async () => {
  model = await modelServer();
  home = new Home(`model: test/any
providers: { test: { type: openai-compatible, base_url: "${model.url}" } }
prices: { test/any: { input: 1, output: 2 } }
tools: { ask: [stock_sell] }
agents: { main: {}, other: {} }
`);
  daemon = await startDaemon({ home: home.path, port: 0, logLevel: "error", tools: [stock, slow, sell] });
});
afterAll(async () => {
  released();
  await daemon.stop();
  await model.close();
  await home.remove();
});

async function api<Answer>(path: string, init: RequestInit = {}, token = daemon.operatorToken): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return (await (await fetch(`${daemon.url}${path}`, { ...init, headers })).json()) as Answer;
}

let sent = 0;
async function send(text: string): Promise<string> {
  const message = { id: `m${sent++}`, platform: "test", chat: "c", peer: `p${sent}`, chat_type: "dm", text };
  return (await api<{ runId: string }>("/api/messages", { method: "POST", body: JSON.stringify(message) })).runId;
}

async function finished(runId: string): Promise<Run> {
  await fetch(`${daemon.url}/api/runs/${runId}/live`, { headers: { authorization: `Bearer ${daemon.operatorToken}` } }).then((live) =>
    live.text(),
  );
  return api<Run>(`/api/runs/${runId}`);
}

/** The command line at a real pseudo-terminal. What is typed comes when the screen shows what it waits for. */
function atTerminal(args: string): {
  type(text: string): void;
  shows(text: string | RegExp): Promise<void>;
  ended: Promise<number | null>;
} {
  const command = `${process.execPath} ${LAUNCHER} ${args} --home ${home.path}`;
  const child = spawn("script", ["-qec", command, "/dev/null"], { env: { ...process.env, TERM: "xterm", NO_COLOR: "1", COLUMNS: "100" } });
  let screen = "";
  child.stdout.on("data", (data) => {
    screen += data;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return {
    type: (text) => child.stdin.write(text),
    shows: (text) => vi.waitFor(() => expect(screen).toMatch(text), { timeout: 15_000, interval: 50 }),
    ended,
  };
}

const withCall = (tool: string, thing = "apples") => ({ text: "Let me see.", calls: [{ tool, args: { thing } }] });

test("run show tells a turn from its message to its reply, with what it took", async () => {
  model.play([withCall("stock_count"), { text: "Seven apples.", usage: { input: 1_000, output: 500 } }]);
  const runId = await send("how many apples?");
  await finished(runId);
  const told = await home.run(["run", "show", runId.slice(0, 16)]);
  expect(told.stderr).toBe("");
  expect(told.stdout).toMatch(/asked +test:p\d+/);
  expect(told.stdout).toContain("how many apples?");
  expect(told.stdout).toMatch(/· stock_count \{"thing":"apples"\} +\d+ ms\n +→ 7 apples/);
  expect(told.stdout).toContain("Seven apples.");
  expect(told.stdout).toMatch(/in all +2 answers, 1 call, 1010 in, 505 out, \$0\.00202/);
  const { stdout } = await home.run(["run", "show", runId, "--json"]);
  const { run, steps } = JSON.parse(stdout) as RunSteps;
  expect(run).toMatchObject({ id: runId, status: "completed" });
  expect(steps).toMatchObject([
    { kind: "response", text: "Let me see.", calls: [{ tool: "stock_count", state: "done", result: { text: "7 apples", failed: false } }] },
    { kind: "response", text: "Seven apples.", cost: 2_000, calls: [] },
  ]);
  const context = await home.run(["run", "show", runId, "--context"]);
  expect(context.stdout).toMatch(/before answer 2 of test\/any: about \d+ tokens/);
  expect(context.stdout).toMatch(/── tool · \d+ tokens\n→ stock_count: 7 apples/);
  expect(context.stdout).not.toContain("differs from what was sent");
  expect(await home.run(["run", "show", "nosuchrun"])).toMatchObject({ code: 1, stderr: expect.stringContaining("there is no run") });
});

test("an agent sees its own turns and nobody else's", async () => {
  model.play(["Hello."]);
  const runId = await send("hi");
  await finished(runId);
  const tokenOf = async (scope: string) =>
    (await api<{ token: string }>("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) })).token;
  expect(await api(`/api/runs/${runId}/steps`, {}, await tokenOf("agent:main"))).toMatchObject({ run: { id: runId } });
  const other = await tokenOf("agent:other");
  expect(await api(`/api/runs/${runId}/steps`, {}, other)).toMatchObject({ error: { code: "request.not_found" } });
  expect(await api("/api/runs", {}, other)).toEqual({ runs: [], total: 0 });
});

test("ps tells who does what now, and what it took so far", async () => {
  model.play([withCall("stock_order"), "Done."]);
  const runId = await send("order apples");
  await vi.waitFor(async () => {
    const { runs } = await api<OpenRuns>("/api/runs");
    expect(runs).toMatchObject([
      { id: runId, status: "running", usage: { calls: 1 }, calls: [{ tool: "stock_order", state: "intended" }] },
    ]);
  }, 15_000);
  const now = await home.run(["ps"]);
  expect(now.stdout).toMatch(new RegExp(`${runId} +main +running .*\\$0\\.00002 +runs stock_order \\{"thing":"apples"\\}`));
  released();
  await finished(runId);
  expect((await home.run(["ps"])).stdout).toBe("nobody does anything now\n");
});

test("tail follows events from a number on, and only those that are wanted", async () => {
  model.play(["Hello."]);
  const runId = await send("hi");
  await finished(runId);
  const child = spawn(process.execPath, [
    LAUNCHER,
    "tail",
    "--after",
    "0",
    "--subject",
    `run/${runId}`,
    "--type",
    "turn.",
    "--json",
    "--home",
    home.path,
  ]);
  let seen = "";
  child.stdout.on("data", (data) => {
    seen += data;
  });
  await vi.waitFor(() => expect(seen.trim().split("\n")).toHaveLength(2), { timeout: 10_000 });
  child.kill("SIGINT");
  expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(0);
  expect(
    seen
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).type),
  ).toEqual(["turn.started", "turn.completed"]);
});

test("whoever waits behind an earlier message of the conversation is told what that one waits for", async () => {
  model.play([withCall("stock_sell"), "Not sold.", "Here I am."]);
  const first = home.run(["chat", "-m", "sell some"]);
  const waiting = async (): Promise<{ id: string }> => {
    const { approvals } = await api<{ approvals: { id: string }[] }>("/api/approvals?state=asked");
    if (!approvals[0]) throw new Error("nothing is asked");
    return approvals[0];
  };
  const { id } = await vi.waitFor(waiting, { timeout: 15_000, interval: 50 });
  const second = spawn(process.execPath, [LAUNCHER, "chat", "-m", "are you there?", "--home", home.path]);
  const closed = new Promise((resolve) => second.once("close", resolve));
  let told = "";
  second.stderr.on("data", (data) => {
    told += data;
  });
  await vi.waitFor(() => expect(told).toMatch(/an earlier message .* waits for an approval.*guildhall approvals list/), {
    timeout: 15_000,
  });
  await api(`/api/approvals/${id}`, { method: "POST", body: JSON.stringify({ verdict: "deny" }) });
  expect((await first).stdout).toContain("Not sold.");
  expect(await closed).toBe(0);
}, 40_000);

test("Ctrl-C ends a single message: its turn is stopped, however often the one press is heard", async () => {
  model.play([withCall("stock_order"), "never said"]);
  const child = spawn(process.execPath, [LAUNCHER, "chat", "-m", "order some", "--home", home.path]);
  let told = "";
  child.stderr.on("data", (data) => {
    told += data;
  });
  const running = async (): Promise<string | undefined> => {
    const { runs } = await api<{ runs: { id: string; calls: unknown[] }[] }>("/api/runs");
    return runs.find(({ calls }) => calls.length > 0)?.id;
  };
  const runId = await vi.waitFor(
    async () => {
      const id = await running();
      if (id === undefined) throw new Error("no call is made");
      return id;
    },
    { timeout: 15_000, interval: 50 },
  );
  const closed = new Promise((resolve) => child.once("close", resolve));
  // As a terminal does, with a launcher in between that passes it on.
  child.kill("SIGINT");
  await sleep(1);
  child.kill("SIGINT");
  expect(await closed).toBe(1);
  expect(told).toBe("(stopped)\n");
  expect(await api<Run>(`/api/runs/${runId}`)).toMatchObject({ status: "failed", error: { code: "run.stopped" } });
}, 30_000);

test.skipIf(withoutTerminal)(
  "at a terminal: a call is one line, its output is seen while it runs, and Ctrl-C stops the turn and not the program",
  async () => {
    // Slow enough to be watched from its beginning.
    const watched = { ...withCall("stock_count"), delayMs: 1_000 };
    model.play([watched, "Seven apples.", withCall("stock_order"), "never said", "Still here."]);
    const screen = atTerminal("chat");
    await screen.shows(/main answers with test\/any[\s\S]*main> /);
    screen.type("how many apples?\r");
    await screen.shows(/Let me see\.[\s\S]*· stock_count apples {2}\d+ ms[\s\S]*Seven apples\./);
    screen.type("order some\r");
    await screen.shows(/· stock_order ringing!/);
    screen.type("\x03");
    await screen.shows(/\(stopped\)/);
    model.play(["Still here."]);
    screen.type("are you there?\r");
    await screen.shows("Still here.");
    screen.type("/exit\r");
    expect(await screen.ended).toBe(0);
  },
  60_000,
);

test.skipIf(withoutTerminal)(
  "at a terminal: what a person must allow is asked in place",
  async () => {
    model.play([withCall("stock_sell", "pears"), "Sold.", withCall("stock_sell", "plums"), "Not sold."]);
    const screen = atTerminal("chat");
    await screen.shows("main> ");
    screen.type("sell pears\r");
    await screen.shows(/main wants to call stock_sell[\s\S]*pears[\s\S]*allow it\? \(y\/n\) /);
    screen.type("maybe\r");
    await sleep(200);
    screen.type("y\r");
    await screen.shows(/· stock_sell pears {2}\d+ ms[\s\S]*Sold\./);
    screen.type("sell plums\r");
    await screen.shows(/plums[\s\S]*allow it\? \(y\/n\) /);
    screen.type("n\r");
    await screen.shows("Not sold.");
    screen.type("\x1b[A\x1b[A\r");
    await vi.waitFor(() => expect(model.requests.at(-1)?.body.messages.at(-1)?.content).toBe("sell pears"), { timeout: 10_000 });
    screen.type("\x04");
    expect(await screen.ended).not.toBeNull();
    const results = model.requests.flatMap(({ body }) => body.messages).filter(({ role }: { role: string }) => role === "tool");
    expect(JSON.stringify(results)).toContain("sold pears");
    expect(JSON.stringify(results)).not.toContain("sold plums");
  },
  60_000,
);

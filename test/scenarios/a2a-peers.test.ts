import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Task } from "../../src/contract/tasks.ts";
import type { Run } from "../../src/contract/wire.ts";
import { A2aPeer, type PeerOptions } from "../a2a-peer.ts";
import { type ModelServer, modelServer, type Script } from "../model-server.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

let models: ModelServer;
let peer: A2aPeer;
let home: Home;
let daemon: RunningDaemon;

beforeEach(async () => {
  models = await modelServer(delegating);
});

afterEach(async () => {
  await home.remove();
  await peer.stop();
  await models.close();
});

/** Asks the peer, then says what came of it. */
const delegating: Script = ({ body }) => {
  const last = body.messages.at(-1);
  if (last.role === "tool") return `It says ${last.content}`;
  return { calls: [{ tool: "agent_delegate", args: { agent: "peer:other", goal: "count the herons" } }] };
};

async function house(options: PeerOptions = {}, crashesAt?: string): Promise<void> {
  peer = await new A2aPeer({ token: "peer-token-value", ...options }).start();
  home = new Home(`
model: test/any
providers: { test: { type: openai-compatible, base_url: ${models.url} } }
peers: { other: { url: ${peer.url}, token: peer-token-value } }
agents: { main: { subagents: { agents: [peer:other] } } }
`);
  daemon = await (crashesAt === undefined ? home.start() : home.startCrashing(crashesAt));
}

async function ask(): Promise<string> {
  return (await daemon.send({ id: crypto.randomUUID(), text: "How many herons are there?" })).runId;
}

async function answered(runId: string): Promise<Run> {
  await expect.poll(async () => (await daemon.run(runId)).status, { timeout: 30_000, interval: 100 }).toMatch(/completed|failed/);
  return daemon.run(runId);
}

async function remoteTask(): Promise<Task> {
  const { tasks } = (await (await daemon.fetch("/api/tasks?limit=10")).json()) as { tasks: Task[] };
  return tasks.find(({ kind }) => kind === "remote") as Task;
}

const isWaiting = (runId: string) =>
  expect.poll(async () => (await daemon.run(runId)).status, { timeout: 20_000, interval: 50 }).toBe("waiting");

describe("an agent elsewhere, made with the official SDK, is asked by an agent of ours", () => {
  test.each([[true], [false]])("and its answer comes back (streaming: %s)", async (streaming) => {
    await house({ streaming });
    peer.react = () => ({ completes: "seven herons", afterMs: 200 });
    const run = await answered(await ask());
    expect(run.reply?.text).toContain("seven herons");
    expect(await remoteTask()).toMatchObject({ status: "completed", result: "seven herons", agent: "peer:other", from: "main", depth: 1 });
    expect(peer.executed).toHaveLength(1);
    expect(new Set(peer.calls.map(({ authorization }) => authorization))).toEqual(new Set(["Bearer peer-token-value"]));
  });

  test("and its failure is told to the agent that asked", async () => {
    await house();
    peer.react = () => ({ fails: "the herons have flown" });
    const run = await answered(await ask());
    expect(run.reply?.text).toContain("the herons have flown");
    expect(await remoteTask()).toMatchObject({ status: "failed", error: { code: "task.peer_refused" } });
  });

  test("nothing is held while it takes its time, and a cancel is passed on", async () => {
    await house();
    peer.react = () => ({ never: true });
    const runId = await ask();
    await isWaiting(runId);
    await expect.poll(async () => (await remoteTask())?.status, { timeout: 20_000 }).toBe("running");
    await expect.poll(() => peer.executed.length).toBe(1);
    const { id } = await remoteTask();
    const cancelled = await daemon.fetch(`/api/tasks/${id}/cancel`, { method: "POST" });
    expect(cancelled.status).toBe(200);
    await expect.poll(() => peer.cancelled.length, { timeout: 20_000 }).toBe(1);
    expect((await answered(runId)).reply?.text).toContain("cancelled");
  });

  test("it dies and comes back: the task is found again", async () => {
    await house();
    peer.react = () => ({ completes: "seven after all", afterMs: 100 });
    const runId = await ask();
    await expect.poll(() => peer.executed.length, { timeout: 20_000 }).toBe(1);
    await sleep(300);
    await peer.stop();
    await expect
      .poll(async () => (await remoteTask()).error?.code ?? (await remoteTask()).status, { timeout: 20_000 })
      .toMatch(/task.peer_lost|completed/);
    await peer.start();
    expect((await answered(runId)).reply?.text).toContain("seven after all");
    expect(peer.executed).toHaveLength(1);
  });
});

describe("our daemon is killed", () => {
  test("while it waits: the task is found again, and was sent once", async () => {
    await house();
    peer.react = () => ({ completes: "seven herons", afterMs: 3_000 });
    const runId = await ask();
    await expect.poll(() => peer.executed.length, { timeout: 20_000 }).toBe(1);
    await isWaiting(runId);
    await daemon.kill("SIGKILL");
    daemon = await home.start();
    expect((await answered(runId)).reply?.text).toContain("seven herons");
    expect(peer.executed).toHaveLength(1);
    expect(peer.calls.filter(({ method }) => method === "SendMessage")).toHaveLength(1);
  });

  test.each([
    ["remote.intended", 1],
    ["remote.sent", 1],
  ])("at %s: asked once in all", async (point, times) => {
    await house({}, point);
    const runId = await ask();
    await daemon.ended;
    daemon = await home.start();
    expect((await answered(runId)).reply?.text).toContain("done: count the herons");
    expect(peer.executed).toHaveLength(times);
  });
});

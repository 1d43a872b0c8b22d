import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished as after, expect, test } from "vitest";
import { z } from "zod";
import { readServerSentEvents } from "../../src/client/server-sent-events.ts";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { type NodeList, nodeList } from "../../src/contract/nodes.ts";
import { createGuildhall, defineTool, type Guildhall } from "../../src/library/index.ts";
import { type ModelServer, modelServer, type Script } from "../model-server.ts";
import { migratedPostgresPlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const SOON = { timeout: 10_000, interval: 50 };
/** Several processes each, and what stops takes its time. */
const LONG = { timeout: 90_000 };

async function model(script: Script): Promise<ModelServer> {
  const server = await modelServer(script);
  after(() => server.close());
  return server;
}

/** Homes of nodes on one database, whose agent touches no files. */
async function homes(count: number, { url }: ModelServer, onPostgres = true): Promise<Home[]> {
  const place = onPostgres ? await migratedPostgresPlace() : undefined;
  after(() => place?.remove());
  const store = place ? `store: ${place.location}\n` : "";
  const config = `${store}providers: { test: { type: openai-compatible, base_url: "${url}" } }
agents: { main: { model: test/any, tools: { profile: messaging } } }\n`;
  return Array.from({ length: count }, () => {
    const home = new Home(config);
    after(() => home.remove());
    return home;
  });
}

const nodesSeenBy = async (daemon: RunningDaemon): Promise<NodeList> => nodeList.parse(await (await daemon.fetch("/api/nodes")).json());

async function refusal(response: Promise<Response>): Promise<[number, string, string | null]> {
  const answer = await response;
  const { error } = (await answer.json()) as { error: { code: string } };
  return [answer.status, error.code, answer.headers.get("connection")];
}

test(
  "a node that is told to stop refuses what is new, and hands a turn over at once: whoever waits gets the answer from another",
  LONG,
  async () => {
    const server = await model((_request, count) => (count === 0 ? { text: ["I be", "gin"], hangAfter: 1 } : "the other has answered"));
    const [homeA, homeB] = (await homes(2, server)) as [Home, Home];
    const [a, b] = await Promise.all([homeA.start({ args: ["--labels", "gpu, zone=eu"] }), homeB.start()]);
    const ask = (daemon: RunningDaemon): Promise<Response> =>
      daemon.fetch("/v1/chat/completions", {
        method: "POST",
        headers: { "idempotency-key": "one question" },
        body: JSON.stringify({ model: "main", messages: [{ role: "user", content: "hello" }] }),
      });
    const waiting = ask(a);
    await server.seen(1);

    const [{ stdout }, { stdout: words }] = await Promise.all([homeB.run(["ps", "--nodes", "--json"]), homeB.run(["ps", "--nodes"])]);
    const seen = nodeList.parse(JSON.parse(stdout));
    const [viewA, viewB] = [homeA, homeB].map(({ name }) => seen.nodes.find((node) => node.name === name));
    expect(viewA).toMatchObject({
      state: "up",
      turns: 1,
      url: a.url,
      labels: ["gpu", "zone=eu"],
      oldestSince: expect.any(Number),
      problem: null,
    });
    expect(viewB).toMatchObject({ id: seen.here, state: "up", turns: 0, url: b.url });
    expect(words).toMatch(new RegExp(`^${homeA.name} +up .* gpu zone=eu$`, "m"));
    expect(words).toContain(`${homeB.name} *`);
    const measured = await (await fetch(`${b.url}/metrics`)).text();
    expect(measured).toContain('guildhall_nodes{state="up"} 2');
    expect(measured).toContain(`guildhall_node_work{node="${homeA.name}",kind="turn"} 1`);

    const ended = a.kill("SIGTERM");
    await expect.poll(async () => (await fetch(`${a.url}/readyz`)).status, SOON).toBe(503);
    expect((await fetch(`${a.url}/healthz`)).status).toBe(200);
    // Whoever asks whether it is ready, as proxies do, is given the time to go elsewhere before it refuses anything.
    await expect
      .poll(() => refusal(a.fetch("/api/messages", { method: "POST", body: "{}" })), SOON)
      .toEqual([503, "daemon.stopping", "close"]);
    await expect.poll(async () => (await nodesSeenBy(b)).nodes.map(({ state }) => state).toSorted(), SOON).toEqual(["draining", "up"]);
    expect(await refusal(waiting)).toEqual([503, "daemon.stopping", "close"]);
    expect((await ended).code).toBe(0);

    const answer = await ask(b);
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: "the other has answered" } }] });
    expect(server.requests).toHaveLength(2);
    // Nothing has waited for the end of a lease.
    expect(await (await fetch(`${b.url}/metrics`)).text()).toContain("guildhall_takeovers_total 0");
    expect((await nodesSeenBy(b)).nodes.map(({ name }) => name)).toEqual([homeB.name]);
    expect((await toldOfNodes(b)).map(({ type }) => type)).toEqual(["node.joined", "node.joined", "node.left"]);
  },
);

test("after kill -9 the same home starts at once and takes up its own work; its name is nobody else's meanwhile", LONG, async () => {
  const server = await model((_request, count) => (count === 0 ? { hangAfter: 0 } : "the second life has answered"));
  const [home, other] = (await homes(2, server)) as [Home, Home];
  const first = await home.start({ args: ["--name", "hall-1"] });
  const { runId } = await first.send({ id: "1" });
  await server.seen(1);
  const refused = await other.run(["start", "--port", "0", "--name", "hall-1"]);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toContain(`a node named "hall-1" is alive, at ${first.url} [node.name_taken]`);
  await first.kill("SIGKILL");
  const second = await home.start({ args: ["--name", "hall-1"] });
  expect(await second.finished(runId)).toMatchObject({ status: "completed", reply: { text: "the second life has answered" } });
  // It has taken over what was its own before it was there, and not at the end of a lease.
  const told = await toldOfNodes(second);
  expect(told.map(({ type }) => type)).toEqual(["node.joined", "node.lost", "node.joined"]);
  expect(told[1]?.data).toMatchObject({ name: "hall-1", held: 1 });
  expect(await (await fetch(`${second.url}/metrics`)).text()).toContain("guildhall_takeovers_total 1");
  const { checks } = JSON.parse((await other.run(["doctor", "--json"])).stdout) as { checks: { id: string; found: string }[] };
  expect(checks.find(({ id }) => id === "nodes")?.found).toContain(`1 running: hall-1 (`);
  expect(checks.find(({ id }) => id === "clock")?.found).toContain("like the database's");
});

test("a second signal ends a node at once; a name that is no name is refused before anything is touched", LONG, async () => {
  const server = await model([{ hangAfter: 0 }]);
  const [home] = (await homes(1, server, false)) as [Home];
  for (const [args, words] of [
    [["--name", "two words"], "--name: a node's name is"],
    [["--labels", "a,,b"], "--labels: a label is"],
  ] as const) {
    const refused = await home.run(["start", "--port", "0", ...args]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(words)]);
  }
  const daemon = await home.start();
  await daemon.send({ id: "1" });
  await server.seen(1);
  void daemon.kill("SIGTERM");
  await expect.poll(async () => (await fetch(`${daemon.url}/readyz`)).status, SOON).toBe(503);
  // The echo of the first signal, as a terminal and a launcher make it, is not a second one.
  await sleep(600);
  expect((await daemon.kill("SIGINT")).code).toBe(130);
});

test("a call that must not be made twice is not made again by the node that goes on with the turn", LONG, async () => {
  const server = await model((request) =>
    request.body.messages.at(-1).role === "tool" ? "nobody knows" : { calls: [{ tool: "launch", args: {} }] },
  );
  const place = await migratedPostgresPlace();
  after(() => place.remove());
  const launched: string[] = [];
  const node = async (name: string): Promise<Guildhall> => {
    const home = mkdtempSync(join(tmpdir(), "guildhall-nodes-"));
    const launch = defineTool({
      name: "launch",
      description: "Once is enough.",
      parameters: z.object({}),
      effect: "unsafe",
      run: (_args, { signal }) => {
        launched.push(name);
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true }));
      },
    });
    const config = {
      store: place.location,
      providers: { test: { type: "openai-compatible" as const, base_url: server.url } },
      agents: { main: { model: "test/any", tools: ["launch"] } },
    };
    const hall = await createGuildhall({ home, name, labels: ["here"], tools: [launch], config, log: "error" });
    after(async () => {
      await hall.stop();
      rmSync(home, { recursive: true, force: true });
    });
    return hall;
  };
  const [a, b] = [await node("a"), await node("b")];
  const { runId } = await a.client.api.send({ id: "1", platform: "test", chat: "c", chat_type: "dm", peer: "p", text: "launch it" });
  await expect.poll(() => launched.length, SOON).toBe(1);
  await a.stop();
  let reply: unknown;
  for await (const seen of b.client.api.follow(runId)) if (seen.kind === "done") reply = seen.run.reply?.text;
  expect(reply).toBe("nobody knows");
  expect(launched).toEqual(["a"]);
  expect(server.requests.at(-1)?.body.messages.at(-1)).toMatchObject({
    role: "tool",
    content: expect.stringMatching(/unknown|not known/i),
  });
});

/** What the ledger says of nodes up to now. */
async function toldOfNodes(daemon: RunningDaemon): Promise<LedgerEvent[]> {
  const stop = new AbortController();
  const response = await daemon.fetch("/api/events?after=0", { signal: stop.signal });
  // An event of its own marks what now is.
  const posted = await daemon.fetch("/api/mail", { method: "POST", body: JSON.stringify({ to: "nobody", type: "mark", content: "" }) });
  const { id: mark } = (await posted.json()) as { id: string };
  const events: LedgerEvent[] = [];
  for await (const { data } of readServerSentEvents(response.body as ReadableStream<Uint8Array>)) {
    if (data.includes(mark)) break;
    events.push(JSON.parse(data) as LedgerEvent);
  }
  stop.abort();
  return events.filter(({ type }) => type.startsWith("node."));
}

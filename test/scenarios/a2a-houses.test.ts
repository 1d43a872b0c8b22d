import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Task } from "../../src/contract/tasks.ts";
import { type ModelServer, modelServer, type SeenRequest } from "../model-server.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

/** Two daemons, each with a token of the other. */
interface House {
  readonly home: Home;
  daemon: RunningDaemon;
  token: string;
}

let models: ModelServer;
let west: House;
let east: House;
/** What an agent says, by its house and name. */
let script: Record<string, (said: string) => string | { delegate: string }> = {};

beforeAll(async () => {
  models = await modelServer(speaking);
  west = await opened("west");
  east = await opened("east");
  await acquaint("west", west, east);
  await acquaint("east", east, west);
});

afterAll(async () => {
  await west?.home.remove();
  await east?.home.remove();
  await models?.close();
});

/** Agents are told apart by what they are told about themselves. */
function speaking({ body }: SeenRequest) {
  const system = JSON.stringify(body.messages[0]);
  const who = /I am (\w+ \w+)/.exec(system)?.[1] ?? "";
  const last = body.messages.at(-1);
  const said = typeof last.content === "string" ? last.content : JSON.stringify(last.content);
  if (last.role === "tool") return `${who} heard: ${said}`;
  const reaction = script[who]?.(said) ?? `${who} answers`;
  if (typeof reaction === "string") return reaction;
  return { calls: [{ tool: "agent_delegate", args: { agent: reaction.delegate, goal: `from ${who}` } }] };
}

function config(name: string, other?: House): string {
  const peers = other ? `peers: { far: { url: ${other.daemon.url}/a2a/main, token: ${other.token} } }` : "";
  const far = other ? ", peer:far" : "";
  return `
model: test/any
providers: { test: { type: openai-compatible, base_url: ${models.url} } }
a2a: { agents: [main], max_depth: 3 }
${peers}
agents:
  main: { default: true, guests: [${name === "west" ? "eastern" : "western"}], personality: I am ${name} main, subagents: { max_depth: ${name === "west" ? 2 : 5}, agents: [helper${far}] } }
  helper: { personality: I am ${name} helper, subagents: { max_depth: 5, agents: [third${far}] } }
  third: { personality: I am ${name} third }
`;
}

async function opened(name: string): Promise<House> {
  const home = new Home(config(name));
  const daemon = await home.start();
  const scope = `guest:${name === "west" ? "eastern" : "western"}`;
  const made = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
  return { home, daemon, token: ((await made.json()) as { token: string }).token };
}

/** Its config names the other from now on; a running daemon takes it up by itself. */
async function acquaint(name: string, one: House, other: House): Promise<void> {
  writeFileSync(join(one.home.path, "guildhall.yaml"), config(name, other));
  while ((await revisionOf(one)) < 2) await sleep(100);
}

async function revisionOf({ daemon }: House): Promise<number> {
  const { revisions } = (await (await daemon.fetch("/api/config/revisions")).json()) as { revisions: unknown[] };
  return revisions.length;
}

async function ask({ daemon }: House, text: string): Promise<string> {
  const { runId } = await daemon.send({ id: crypto.randomUUID(), text });
  await expect.poll(async () => (await daemon.run(runId)).status, { timeout: 30_000, interval: 100 }).toMatch(/completed|failed/);
  return (await daemon.run(runId)).reply?.text ?? "";
}

async function tasksOf({ daemon }: House): Promise<Task[]> {
  return ((await (await daemon.fetch("/api/tasks?limit=100")).json()) as { tasks: Task[] }).tasks;
}

describe("two houses", () => {
  test("one asks the other, each with its own rights, depth and parentage", async () => {
    script = { "west main": () => ({ delegate: "peer:far" }), "east main": () => "east main answers" };
    expect(await ask(west, "Ask the other house.")).toContain("east main answers");
    const [there] = (await tasksOf(east)).filter(({ kind }) => kind === "api");
    const [here] = (await tasksOf(west)).filter(({ kind }) => kind === "remote");
    expect(there).toMatchObject({ from: "western", agent: "main", depth: 1, status: "completed" });
    expect(here).toMatchObject({ from: "main", agent: "peer:far", depth: 1, status: "completed", result: "east main answers" });
  });

  test("a loop through both is found by the first, at its second visit", async () => {
    script = { "west main": () => ({ delegate: "peer:far" }), "east main": () => ({ delegate: "peer:far" }) };
    const answer = await ask(west, "Go round.");
    expect(answer).toContain("goes round in a circle");
    const there = (await tasksOf(east)).filter(({ kind }) => kind === "remote");
    expect(there.map(({ status, error }) => [status, error?.code])).toEqual([["failed", "task.peer_refused"]]);
    expect((await tasksOf(west)).filter(({ kind }) => kind === "api")).toEqual([]);
  });

  test("the doctor says who is published and who answers", async () => {
    const { stdout } = await west.home.run(["doctor", "--json"]);
    const { checks } = JSON.parse(stdout) as { checks: { id: string; severity: string; found: string }[] };
    expect(checks).toContainEqual(expect.objectContaining({ id: "a2a", severity: "ok", found: "published: main" }));
    expect(checks).toContainEqual(expect.objectContaining({ id: "peer.far", severity: "ok", found: "main answers and streams" }));
    const lost = new Home("a2a: { agents: [main] }\npeers: { gone: { url: http://127.0.0.1:9/ } }\n");
    const said = JSON.parse((await lost.run(["doctor", "--json"])).stdout) as { checks: typeof checks };
    expect(said.checks).toContainEqual(expect.objectContaining({ id: "peer.gone", severity: "warning" }));
    expect(said.checks).toContainEqual(expect.objectContaining({ id: "a2a.main", severity: "warning" }));
    await lost.remove();
  });

  test("how deep a chain may be is counted across both", async () => {
    // West allows a depth of 2: east's main is at 1, its helper at 2, and nobody is at 3, whatever east would allow.
    script = {
      "west main": () => ({ delegate: "peer:far" }),
      "east main": () => ({ delegate: "helper" }),
      "east helper": () => ({ delegate: "third" }),
    };
    const answer = await ask(west, "Go deep.");
    expect(answer).toContain("depth 3");
    expect((await tasksOf(east)).filter(({ agent }) => agent === "third")).toEqual([]);
    // East by itself may go deeper.
    script = { "east main": () => ({ delegate: "helper" }), "east helper": () => ({ delegate: "third" }) };
    expect(await ask(east, "Go deep.")).toContain("east third answers");
  });
});

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished as after, expect, test } from "vitest";
import type { FullAgentList } from "../../src/contract/agents.ts";
import { type NodeList, nodeList } from "../../src/contract/nodes.ts";
import { modelServer, type ScriptedReply, type SeenRequest } from "../model-server.ts";
import { migratedPostgresPlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const CODER = "sandbox: none, tools: [file_write, file_read, terminal, delegate_task]";
const SOON = { timeout: 30_000, interval: 50 };

/** `write NAME`, `read NAME`, `run COMMAND` (in the background), `hand TEXT` (to a child), `slow`; whatever a tool answers is the answer. */
function reply({ body }: SeenRequest): ScriptedReply | string {
  const last = body.messages.at(-1);
  if (last.role === "tool") return String(last.content);
  const said = body.messages.findLast(({ role }: { role: string }) => role === "user").content;
  const words = typeof said === "string" ? said : said.map(({ text = "" }: { text?: string }) => text).join(" ");
  const [, verb = "", rest = ""] = /(write|read|run|hand|slow) ?(.*)/.exec(words) ?? [];
  if (verb === "write") return { calls: [{ tool: "file_write", args: { path: rest, content: `this is ${rest}` } }] };
  if (verb === "read") return { calls: [{ tool: "file_read", args: { path: rest } }] };
  if (verb === "run") return { calls: [{ tool: "terminal", args: { command: rest, background: true } }] };
  if (verb === "hand") return { calls: [{ tool: "delegate_task", args: { goal: rest } }] };
  return verb === "slow" ? { text: "done", delayMs: 1_500 } : "fine";
}

/** Two homes on one database. `config`: with these agents besides `main`, who touches no files. */
async function house(agents: string) {
  const server = await modelServer((request) => reply(request));
  const place = await migratedPostgresPlace();
  const config = (others: string): string => `store: ${place.location}
model: test/any
providers: { test: { type: openai-compatible, base_url: "${server.url}" } }
agents:
  main: { default: true, tools: minimal }
${others}
`;
  const homes = [new Home(config(agents)), new Home(config(agents))] as const;
  after(async () => {
    for (const home of homes) await home.remove();
    await place.remove();
    await server.close();
  });
  return { homes, place, config };
}

let sent = 0;
const send = async (daemon: RunningDaemon, agent: string, text: string): Promise<string> => {
  const number = `${sent++}`;
  return (await daemon.send({ id: number, agent, text, chat: number, peer: number })).runId;
};
/** What comes of it, asked where it was posted, whoever has answered. */
const ended = async (daemon: RunningDaemon, run: string): Promise<string> => {
  await expect.poll(async () => (await daemon.run(run)).status, SOON).toMatch(/completed|failed/);
  const { reply: said, error } = await daemon.run(run);
  return said?.text ?? JSON.stringify(error);
};
const ask = async (daemon: RunningDaemon, agent: string, text: string): Promise<string> => ended(daemon, await send(daemon, agent, text));
const fileOf = ({ path }: Home, agent: string, name: string): string => join(path, "agents", agent, "workspace", name);
const pidIn = (file: string): number => (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0);
const runs = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const problemOf = async (daemon: RunningDaemon, agent: string): Promise<string | null> => {
  const { agents } = (await (await daemon.fetch("/api/agents")).json()) as FullAgentList;
  return agents.find(({ id }) => id === agent)?.problem ?? null;
};
const nodesOf = async (daemon: RunningDaemon): Promise<NodeList> => nodeList.parse(await (await daemon.fetch("/api/nodes")).json());

test("an agent with file tools runs on one node whichever is asked, waits for it when it is gone, and moves when the config says so", async () => {
  const { homes, place, config } = await house(`  coder: { ${CODER} }\n  star: { tools: [file_write], nodes: "*" }`);
  const [homeA, homeB] = homes;
  let [a, b] = await Promise.all([homeA.start(), homeB.start()]);

  // What is written in one turn is read in the next, and by a child, whoever was asked.
  expect(await ask(a, "coder", "write one.txt")).toContain("one.txt");
  expect(existsSync(fileOf(homeA, "coder", "one.txt"))).toBe(true);
  expect(await ask(b, "coder", "read one.txt")).toContain("this is one.txt");
  expect(await ask(b, "coder", "write two.txt")).toContain("two.txt");
  expect(await ask(b, "coder", "hand read two.txt")).toContain("this is two.txt");
  expect(existsSync(fileOf(homeB, "coder", "one.txt")) || existsSync(fileOf(homeB, "coder", "two.txt"))).toBe(false);
  expect(await place.tamper("select agent, node from agent_homes")).toEqual([{ agent: "coder", node: homeA.name }]);

  // Those that touch no files, and those whose files everybody has, run where they are asked.
  const slow = await Promise.all([send(a, "main", "slow"), send(b, "main", "slow")]);
  await expect.poll(async () => (await nodesOf(a)).nodes.map(({ turns }) => turns), SOON).toEqual([1, 1]);
  for (const [index, run] of slow.entries()) expect(await ended(index === 0 ? a : b, run)).toBe("done");
  await ask(a, "star", "write a.txt");
  await ask(b, "star", "write b.txt");
  expect([fileOf(homeA, "star", "a.txt"), fileOf(homeB, "star", "b.txt")].map((file) => existsSync(file))).toEqual([true, true]);

  // Its node is gone: it waits, everybody says why, and the others go on.
  await a.kill("SIGTERM");
  const why = `its turns wait: its files are on the node ${homeA.name}, which is not there`;
  const waiting = await send(b, "coder", "read one.txt");
  await expect.poll(() => problemOf(b, "coder"), SOON).toBe(why);
  expect(await ask(b, "main", "go on")).toBe("fine");
  expect((await b.run(waiting)).status).toBe("queued");
  expect((await nodesOf(b)).missing).toEqual([{ problem: why, agents: ["coder"] }]);
  // Asked again where a busy machine was too slow to find its daemon.
  const said = (...args: string[]) => expect.poll(async () => (await homeB.run(args)).stdout, SOON);
  await said("agents", "list").toContain(`cannot answer: ${why}`);
  await said("ps").toMatch(new RegExp(`^${waiting} .* is to answer read one.txt .*; ${why}$`, "m"));
  await said("ps", "--nodes").toContain(`coder: ${why}`);
  await said("doctor").toMatch(new RegExp(`^warning +agents.nodes +coder: ${why}$`, "m"));

  // It comes back, and with it the answer.
  a = await homeA.start();
  expect(await ended(b, waiting)).toContain("this is one.txt");
  await expect.poll(() => problemOf(b, "coder"), SOON).toBeNull();

  // The operator names the other one: it runs there, on the files that are there, and stays when nothing is said any more.
  await ask(b, "coder", "run echo $$ > pid; exec sleep 1000");
  await expect.poll(() => pidIn(fileOf(homeA, "coder", "pid")), SOON).toBeGreaterThan(0);
  const pid = pidIn(fileOf(homeA, "coder", "pid"));
  expect(runs(pid)).toBe(true);
  const moved = config(`  coder: { ${CODER}, nodes: [${homeB.name}] }`);
  writeFileSync(join(homeB.path, "guildhall.yaml"), moved);
  await expect.poll(async () => (await place.tamper("select node from agent_homes"))[0]?.node, SOON).toBe(homeB.name);
  await expect.poll(async () => (await nodesOf(a)).nodes.every(({ revision }) => revision > 1), SOON).toBe(true);
  expect(await ask(a, "coder", "write three.txt")).toContain("three.txt");
  expect(readFileSync(fileOf(homeB, "coder", "three.txt"), "utf8")).toBe("this is three.txt");
  // What it had left running there, it could not see or end any more.
  await expect.poll(() => runs(pid), SOON).toBe(false);
  const { stderr } = await b.kill("SIGKILL");
  expect(stderr.split("\n").filter((line) => line.includes("nodes of agents are not there"))).toHaveLength(1);
  expect(stderr).toContain(why);

  // It died without a word: nobody takes what is its.
  const last = await send(a, "coder", "read three.txt");
  expect(await ask(a, "main", "go on")).toBe("fine");
  expect((await a.run(last)).status).toBe("queued");
  b = await homeB.start();
  expect(await ended(a, last)).toContain("this is three.txt");
}, 120_000);

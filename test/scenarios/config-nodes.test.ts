// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { parse } from "yaml";
import type { ConfigRevisionList, FullAgentList } from "../../src/contract/agents.ts";
import type { Admission, Run } from "../../src/contract/wire.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { Home } from "./guildhall.ts";

const SOON = { timeout: 15_000, interval: 20 };

/** One home and the daemon that runs on it, among others on the same database. */
class Node {
  readonly home = mkdtempSync(join(tmpdir(), "guildhall-nodes-"));
  readonly name: string;
  #daemon: Daemon | undefined;

  constructor(name: string, text?: string, env = "") {
    this.name = name;
    if (text !== undefined) this.write(text);
    this.setEnv(env);
  }

  get file(): string {
    return join(this.home, "guildhall.yaml");
  }

  get text(): string {
    return readFileSync(this.file, "utf8");
  }

  write(text: string): void {
    writeFileSync(join(this.home, "next"), text);
    renameSync(join(this.home, "next"), this.file);
  }

  setEnv(text: string): void {
    writeFileSync(join(this.home, ".env"), text, { mode: 0o600 });
  }

  async start(leaseMs?: number): Promise<this> {
    const lease = leaseMs === undefined ? {} : { leaseMs };
    this.#daemon = await startDaemon({ home: this.home, name: this.name, host: "127.0.0.1", port: 0, logLevel: "info", ...lease });
    return this;
  }

  async stop(): Promise<void> {
    await this.#daemon?.stop();
    this.#daemon = undefined;
  }

  async call<T>(path: string, init: RequestInit = {}): Promise<T> {
    const { url, operatorToken } = this.#daemon as Daemon;
    const response = await fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${operatorToken}` } });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    return (await response.json()) as T;
  }

  revisions(): Promise<ConfigRevisionList> {
    return this.call("/api/config/revisions");
  }

  /** The number of what it runs on, and the states of its agents. */
  async runs(): Promise<{ readonly revision: number; readonly agents: Readonly<Record<string, string>> }> {
    const { agents, revision } = await this.call<FullAgentList>("/api/agents");
    return { revision, agents: Object.fromEntries(agents.map(({ id, state }) => [id, state])) };
  }

  verb(agent: string, verb: string): Promise<unknown> {
    return this.call(`/api/agents/${agent}/${verb}`, { method: "POST" });
  }

  send(id: string): Promise<Admission> {
    const body = JSON.stringify({ id, platform: "telegram", chat: "-100", peer: "7", chat_type: "group", text: id });
    return this.call("/api/messages", { method: "POST", body });
  }
}

let place: StorePlace;
let store: string;
let log: MockInstance;
const nodes: Node[] = [];
beforeEach(async () => {
  place = postgresPlace();
  await place.open();
  store = `store: ${place.location}\n`;
  log = vi.spyOn(process.stderr, "write").mockImplementation(() => true);
});
afterEach(async () => {
  log.mockRestore();
  for (const node of nodes) await node.stop();
  for (const node of nodes.splice(0)) rmSync(node.home, { recursive: true, force: true });
  await place.remove();
});

function node(name: string, text?: string, env?: string): Node {
  const made = new Node(name, text, env);
  nodes.push(made);
  return made;
}
const said = (words: string): string[] => log.mock.calls.map(([line]) => String(line)).filter((line) => line.includes(words));
const agents = (...ids: string[]): string => `model: offline/demo\nagents: { main: {}, ${ids.map((id) => `${id}: {}`).join(", ")} }\n`;
const problems = async (): Promise<Record<string, string | null>> =>
  Object.fromEntries((await place.tamper("select name, problem from nodes")).map(({ name, problem }) => [name, problem as string | null]));
const applied = async (): Promise<number> =>
  Number((await place.tamper("select count(*) as count from config_revisions where state = 'applied'"))[0]?.count);

test("a change on one node is in force on all under one number, and whoever was away comes back onto it; the store and the file stay each one's own", async () => {
  const first = store + agents("coder");
  const a = await node("a", `store: \${STORE}\n${agents("coder")}`, `STORE=${place.location}\n`).start();
  const b = await node("b", first).start();
  const away = node("c", first);
  // The second text was unknown, and is everybody's; the third node has the same.
  await expect.poll(async () => [await a.runs(), await b.runs()].map(({ revision }) => revision), SOON).toEqual([2, 2]);
  await (await away.start()).stop();
  expect(await applied()).toBe(2);

  // Nobody but the first knows the name of its store, and nobody else has to.
  a.write(`store: \${STORE}\n${agents("coder", "ops")}`);
  for (const each of [a, b]) await expect.poll(() => each.runs(), SOON).toMatchObject({ revision: 3, agents: { ops: "active" } });
  expect(b.text).toBe(first);
  expect((await b.revisions()).current).toMatchObject({ number: 3, file: b.file, file_state: "older", file_revision: 2, problem: null });
  expect((await a.revisions()).current).toMatchObject({ number: 3, file_state: "current", file_revision: 3 });

  log.mockClear();
  await away.start();
  expect(await away.runs()).toMatchObject({ revision: 3, agents: { ops: "active" } });
  expect(said("the config file is older than what is stored").join()).toMatch(
    new RegExp(`warn .*file="${away.file}" revision=3 node="a" older=2`),
  );
  expect(await applied()).toBe(3);
  expect((await b.revisions()).revisions.map(({ node: by, shared }) => [by, shared])).toEqual([
    ["a", true],
    ["b", true],
    ["a", true],
  ]);
});

test("a text whose names are not set here, or with a secret in it, is not used, which is said once and in the list of nodes, until that has changed", async () => {
  const told = agents("q").replace("q: {}", "q: { env: { OTHER: ${OTHER} } }");
  const a = await node("a", store + told, "KEY=one-secret-key\nOTHER=1\n").start();
  const b = await node("b", store + told).start();
  a.write(`${store}${agents("w").replace("w: {}", "w: { env: { KEY: ${KEY} } }")}`);
  await expect
    .poll(problems, SOON)
    .toMatchObject({ a: null, b: expect.stringContaining("${KEY} is not set in the environment or in .env") });
  expect((await problems()).b).toMatch(/^revision 2 of the config, of node a, cannot be used here: revision 2:3:/);
  expect(await b.runs()).toEqual({ revision: 1, agents: { main: "active", q: "quarantined" } });
  await expect(b.verb("main", "pause")).rejects.toThrow(/422.*nothing was changed: revision 2/);
  expect(b.text).toBe(store + told);
  // A name that changes holds for what it runs on.
  b.setEnv("OTHER=2\n");
  await expect.poll(() => b.runs(), SOON).toEqual({ revision: 1, agents: { main: "active", q: "active" } });
  expect(said("the newest config cannot be used on this node")).toHaveLength(1);

  b.setEnv("KEY=another-secret-key\n");
  await expect.poll(() => b.runs(), SOON).toEqual({ revision: 2, agents: { main: "active", w: "active" } });
  await expect.poll(problems, SOON).toEqual({ a: null, b: null });
  expect(await applied()).toBe(2);

  // Whoever has the same file can use what is not shared.
  const telling = `${store}${agents("w").replace("w: {}", "w: { env: { KEY: written-out-here } }")}`;
  a.write(telling);
  await expect.poll(problems, SOON).toMatchObject({ b: expect.stringContaining("a secret is written, so that it is not shared") });
  expect(await b.runs()).toMatchObject({ revision: 2 });
  expect(JSON.stringify(await place.tamper("select * from config_revisions"))).not.toContain("written-out-here");
  b.write(telling);
  await expect.poll(() => b.runs(), SOON).toMatchObject({ revision: 3, agents: { w: "active" } });
  await expect.poll(problems, SOON).toEqual({ a: null, b: null });
  expect(await applied()).toBe(3);

  // Whoever could not follow may go another way; that it takes something from others is told.
  a.write(telling.replace("written-out-here", "another-written-out"));
  await expect.poll(problems, SOON).toMatchObject({ b: expect.stringContaining("revision 4") });
  log.mockClear();
  b.write(store + agents("z"));
  await expect.poll(() => a.runs(), SOON).toEqual({ revision: 5, agents: { main: "active", z: "active" } });
  expect(said("what others had changed since is replaced")).toHaveLength(1);
});

test("a node whose file cannot be used, or that has none, starts with what is stored and says so; without a store it refuses", async () => {
  const a = await node("a", store + agents("coder")).start();
  const broken = node("b", `${store}server: { host: 127.0.0.1, port: 0 }\nmodle: x\n`);
  // Its signs of life are further apart than anybody waits here.
  await broken.start(300_000);
  expect(await broken.runs()).toMatchObject({ revision: 1, agents: { coder: "active" } });
  expect(said("the config file cannot be used; started with what is stored").join()).toMatch(/error .*revision=1 problems=.*modle/);
  expect((await problems()).b).toContain('unknown key (did you mean "model"?)');
  expect((await broken.revisions()).current).toMatchObject({ file_state: "unknown", file_revision: null });

  // It goes on with what the others apply, and once it is an old text again, that is no reason to go back to it.
  a.write(store + agents("coder", "ops"));
  await expect.poll(() => broken.runs(), SOON).toMatchObject({ revision: 2, agents: { ops: "active" } });
  broken.write(store + agents("coder"));
  // At once, and not only with its next sign of life.
  await expect.poll(problems, SOON).toMatchObject({ b: null });
  expect(await broken.runs()).toMatchObject({ revision: 2, agents: { ops: "active" } });
  expect(said("older than what runs")).toHaveLength(1);
  // What somebody writes then is a change like any other.
  broken.write(store + agents("third"));
  await expect.poll(() => a.runs(), SOON).toMatchObject({ revision: 3, agents: { third: "active" } });

  // No YAML at all, except for the line that leads to the others.
  const torn = node("c", `${store}agents: { main: {}, co`);
  await torn.start();
  expect(await torn.runs()).toMatchObject({ revision: 3, agents: { third: "active" } });
  const bare = node("d", undefined, `GUILDHALL_STORE=${place.location}\n`);
  await bare.start();
  expect(await bare.runs()).toMatchObject({ revision: 3, agents: { third: "active" } });
  expect(await applied()).toBe(3);
  await expect(node("e", "agents: { main: {}, co").start()).rejects.toMatchObject({ code: "config.invalid" });
});

test("agents are paused through whichever node, also one with an old file and several at once, and nothing that others have changed is undone", async () => {
  const own = "server: { host: 127.0.0.1, port: 0 }\n";
  const a = await node("a", store + agents("v", "w")).start();
  const b = await node("b", `# ours\n${own}${store}${agents("v", "w")}`).start();
  a.write(store + agents("v", "w", "x"));
  await expect.poll(() => b.runs(), SOON).toMatchObject({ agents: { x: "active" } });

  await b.verb("x", "pause");
  expect(parse(b.text)).toMatchObject({ server: { port: 0 }, store: place.location, agents: { v: {}, x: { state: "paused" } } });
  expect((await b.revisions()).current).toMatchObject({ file_state: "current" });
  await expect.poll(() => a.runs(), SOON).toMatchObject({ agents: { v: "active", x: "paused" } });

  for (const verb of ["pause", "resume"]) {
    await Promise.all([a.verb("v", verb), b.verb("w", verb)]);
    const state = verb === "pause" ? "paused" : "active";
    for (const each of [a, b]) await expect.poll(() => each.runs(), SOON).toMatchObject({ agents: { v: state, w: state, x: "paused" } });
  }
  expect(a.text).not.toContain("server");
  expect(b.text).toContain("server");
});

// Many processes start one after the other.
test("commands change the newest text too, with and without a daemon, and tell what each file is", { timeout: 90_000 }, async () => {
  const b = new Home(store + agents("v", "w"));
  try {
    const a = await node("a", store + agents("v", "w")).start();
    a.write(store + agents("v", "w", "x"));
    await expect.poll(() => a.runs(), SOON).toMatchObject({ revision: 2 });
    const text = (): string => readFileSync(join(b.path, "guildhall.yaml"), "utf8");

    // No daemon runs there: the file is written, and becomes a revision when one starts.
    expect(await b.run(["agents", "pause", "v"])).toMatchObject({ code: 0, stdout: "v is paused\n" });
    expect(parse(text())).toMatchObject({ agents: { v: { state: "paused" }, x: {} } });
    const daemon = await b.start({ args: ["--name", "b"] });
    await expect.poll(() => a.runs(), SOON).toMatchObject({ revision: 3, agents: { v: "paused", x: "active" } });

    a.write(store + agents("v", "w", "x", "y"));
    const seen = async (): Promise<ConfigRevisionList> => (await daemon.fetch("/api/config/revisions")).json() as never;
    await expect.poll(async () => (await seen()).current.number, SOON).toBe(4);
    const told = await b.run(["config", "revisions"]);
    expect(told.stdout).toContain(`this node runs on revision 4 (${(await seen()).current.hash.slice(0, 12)})`);
    expect(told.stdout).toContain(`${join(b.path, "guildhall.yaml")} is not what runs: its text is that of revision 3, and older`);
    expect(told.stdout).toMatch(/\n4 .* a .* applied +agent y added; agent v changed: state active\n3 .* b .* applied /);

    expect((await b.run(["config", "pull"])).stdout).toContain("holds the newest revision now");
    expect(text()).toBe(a.text);

    a.write(store + agents("v", "w", "x", "y", "z"));
    await expect.poll(async () => (await seen()).current.number, SOON).toBe(5);
    const paused = await b.run(["agents", "pause", "w", "--json"]);
    expect(JSON.parse(paused.stdout)).toMatchObject({ state: "paused", changed: true, daemon: "applied", revision: 6 });
    expect(parse(text())).toMatchObject({ agents: { v: {}, w: { state: "paused" }, y: {} } });
    expect((await seen()).current).toMatchObject({ file_state: "current", file_revision: 6, problem: null });
    await expect.poll(() => a.runs(), SOON).toMatchObject({ revision: 6, agents: { w: "paused", z: "active" } });
    await daemon.kill("SIGTERM");
  } finally {
    await b.remove();
  }
});

test("files that change on two nodes at once end on one revision everywhere, and every message is decided by the revision it names", async () => {
  const text = (agent: string, round: number): string =>
    `${store}model: offline/demo\nagents: { main: {}, a: {}, b: {} }\nbindings: [{ agent: ${agent}, telegram: "-100" }] # ${round}\n`;
  const [a, b, c] = [await node("a", text("a", 0)).start(), await node("b", text("a", 0)).start(), await node("c", text("a", 0)).start()];
  const all = [a, b, c];
  const sent: Admission[] = [];
  for (let round = 1; round <= 3; round++) {
    a.write(text("a", round));
    b.write(text("b", round));
    const until = 1 + 2 * round;
    for (let count = 0; ; count++) {
      sent.push(...(await Promise.all(all.map((each) => each.send(`${round}-${count}-${each.name}`)))));
      const seen = await Promise.all(all.map((each) => each.revisions()));
      if (seen.every(({ current }) => current.number === until)) {
        expect(new Set(seen.map(({ current }) => current.hash)).size).toBe(1);
        break;
      }
      expect(count).toBeLessThan(500);
    }
  }
  // Once they have the same revision, they decide the same.
  const last = await Promise.all(all.map((each) => each.send(`last-${each.name}`)));
  expect(new Set(last.map(({ agent, sessionKey }) => `${agent} ${sessionKey}`)).size).toBe(1);
  sent.push(...last);
  const texts = await place.tamper("select number, text from config_revisions");
  const ruled = new Map(texts.map(({ number, text: words }) => [Number(number), /agent: (\w)/.exec(String(words))?.[1]]));
  const used = new Set<number>();
  for (const { runId, agent } of sent) {
    const { decision } = await a.call<Run>(`/api/runs/${runId}`);
    expect([decision.revision, agent]).toEqual([decision.revision, ruled.get(decision.revision as number)]);
    used.add(decision.revision as number);
  }
  expect([...used].some((number) => number < 7) && used.has(7)).toBe(true);
  const decided = await place.tamper("select data from ledger where type = 'route.decided'");
  expect(new Set(decided.map(({ data }) => (JSON.parse(String(data)) as { revision: number }).revision))).toEqual(used);
});

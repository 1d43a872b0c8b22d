import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { configSchema } from "../../src/contract/config.ts";
import { AgentsHere } from "../../src/drivers/dispatch/agents-here.ts";
import { Dispatcher } from "../../src/drivers/dispatch/dispatcher.ts";
import type { Log } from "../../src/kernel/log.ts";
import { AgentRegistry } from "../../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../../src/records/agents/revision.ts";
import { moveHome, nodesChanged, readPlaces, renameHomes, settleHomes } from "../../src/records/nodes/agent-homes.ts";
import { joinNodes, leaveNodes } from "../../src/records/nodes/nodes.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, postgresPlace, type StorePlace, sqlitePlace } from "../stores.ts";

const A = { name: "a", home: "home-a", labels: ["gpu"] };
const B = { name: "b", home: "home-b", labels: [] };
const LEASE_MS = 60_000;
/** On a busy machine. */
const WHILE = { timeout: 20_000 };
const UP = { state: "up", revision: 1, problem: null } as const;

type Node = typeof A | typeof B;
const join = (store: Store, node: Node): Promise<unknown> =>
  joinNodes(store, { ...node, id: `life of ${node.name}`, version: "1", url: "http://x", leaseMs: LEASE_MS }, UP);
const homes = async (store: Store): Promise<Record<string, string>> =>
  Object.fromEntries((await readPlaces(store.read)).homes.map(({ agent, node, home }) => [agent, `${node} ${home}`]));

describe.each(PLACES)("homes of agents on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  test("the first to say so has the files, and everybody is told the same", async () => {
    const said = await Promise.all([A, B, A, B, B].map((node) => settleHomes(store, ["two", "one"], node)));
    expect(new Set(said.map((rows) => JSON.stringify(rows))).size).toBe(1);
    expect(said[0]?.map(({ agent }) => agent)).toEqual(["one", "two"]);
    expect(Object.keys(await homes(store)).sort()).toEqual(["one", "two"]);
  });

  test("one moves only from where it was when that was decided", async () => {
    const [row] = await settleHomes(store, ["one"], A);
    if (!row) throw new Error("nothing was settled");
    expect(await moveHome(store, row, B)).toBe(true);
    expect(await moveHome(store, row, { ...A, home: "home-c" })).toBe(false);
    expect(await homes(store)).toEqual({ one: "b home-b" });
  });

  test("a home under another name takes its agents along", async () => {
    await settleHomes(store, ["one"], A);
    await settleHomes(store, ["two"], B);
    expect(await renameHomes(store, { name: "renamed", home: A.home })).toEqual([]);
    expect(await homes(store)).toEqual({ one: "renamed home-a", two: "b home-b" });
  });

  test("a name on another home has the agents of the one before it, unless that one is there still", async () => {
    await settleHomes(store, ["one"], A);
    await join(store, { ...A, name: "moved" });
    expect(await renameHomes(store, { name: "a", home: "home-new" })).toEqual([]);
    expect(await homes(store)).toEqual({ one: "a home-a" });
    await leaveNodes(store, "life of moved");
    expect(await renameHomes(store, { name: "a", home: "home-new" })).toEqual(["one"]);
    expect(await homes(store)).toEqual({ one: "a home-new" });
  });

  test("nodes are told apart by whether they are there", async () => {
    await join(store, A);
    await place.elapse(LEASE_MS + 1);
    await join(store, B);
    const { nodes } = await readPlaces(store.read);
    expect(nodes.sort((x, y) => (x.name < y.name ? -1 : 1))).toEqual([
      { ...A, isAlive: false, startedAt: expect.any(Number) },
      { ...B, isAlive: true, startedAt: expect.any(Number) },
    ]);
  });

  test("the pulse tells that a node has come, gone or come again, and else nothing", async () => {
    let before: Parameters<typeof nodesChanged>[0] = [];
    const changed = async (): Promise<boolean> => {
      const [isOtherwise = false] = await store.pulse.ask([nodesChanged(before)]);
      before = (await readPlaces(store.read)).nodes.filter(({ isAlive }) => isAlive);
      return isOtherwise;
    };
    expect(await changed()).toBe(false);
    for (const come of [A, B]) {
      await join(store, come);
      expect(await changed()).toBe(true);
      expect(await changed()).toBe(false);
    }
    await place.elapse(1_000);
    await join(store, A);
    expect(await changed()).toBe(true);
    await leaveNodes(store, "life of a");
    expect(await changed()).toBe(true);
    await place.elapse(LEASE_MS + 1);
    expect(await changed()).toBe(true);
    expect(await changed()).toBe(false);
  });
});

class Recorded implements Log {
  readonly lines: string[] = [];
  readonly info = (message: string, fields?: object): void => void this.lines.push(`info ${message} ${JSON.stringify(fields)}`);
  readonly warn = (message: string, fields?: object): void => void this.lines.push(`warn ${message} ${JSON.stringify(fields)}`);
  readonly error = this.warn;
}

/** One node: what it takes is settled at once, and remembered. */
class Taker {
  readonly agents: AgentRegistry;
  readonly here: AgentsHere;
  readonly took: string[] = [];
  readonly attempts: number[] = [];
  readonly log = new Recorded();
  readonly files = new Set<string>();
  readonly #dispatcher: Dispatcher;

  constructor(store: Store, node: Node, config: object) {
    this.agents = new AgentRegistry(revisionWithoutFile(configSchema.parse(config)));
    const { log, files } = this;
    this.here = new AgentsHere({
      ...{ store, node, log, agents: this.agents },
      hasFiles: (agent) => files.has(agent),
    });
    const take = this.here.only(async (item) => {
      this.took.push(item.tenant as string);
      this.attempts.push(item.attempt);
      await store.transact("settle", (tx) => store.queue.settle(tx, item), "locked");
    });
    this.#dispatcher = new Dispatcher({
      ...{ queue: store.queue, owner: node.name, log, leaseMs: 60_000 },
      handlers: { turn: take },
      limit: () => 8,
      tenants: () => 2,
      elsewhere: () => this.here.elsewhere(),
    });
  }

  start(): void {
    this.#dispatcher.start();
  }

  stop(): Promise<void> {
    return this.#dispatcher.stop(0);
  }

  place(agent: string): boolean {
    const kept = this.#dispatcher.keepPlace(agent);
    kept?.giveUp();
    return kept !== null;
  }

  configure(config: object): void {
    this.agents.apply(revisionWithoutFile(configSchema.parse(config)));
  }
}

const config = (coder: object, more: object = {}) => ({ agents: { main: { tools: "minimal" }, coder, ...more } });

describe("two nodes on one PostgreSQL", () => {
  let place: StorePlace;
  let store: Store;
  let nodes: Taker[];

  beforeEach(async () => {
    place = postgresPlace();
    store = await place.open();
    nodes = [];
  });
  afterEach(async () => {
    for (const node of nodes) await node.stop();
    await place.remove();
  });

  const two = async (of: object): Promise<[Taker, Taker]> => {
    await join(store, A);
    await join(store, B);
    const made = [new Taker(store, A, of), new Taker(await place.open(), B, of)] as const;
    for (const node of made) await node.here.begin();
    nodes.push(...made);
    return [...made];
  };
  let sent = 0;
  const send = (agent: string, count = 1): Promise<void> =>
    store.transact(
      "send",
      async (tx) => {
        for (let index = 0; index < count; index++)
          await store.queue.enqueue(tx, { kind: "turn", payload: {}, lane: [agent, `${sent++}`], tenant: { name: agent, weight: 1 } });
      },
      "locked",
    );
  const waiting = async (): Promise<number> => Object.values(await store.queue.counts()).reduce((sum, count) => sum + count, 0);

  test("100 messages to an agent that nobody knows yet are answered by one of them, whoever is first", async () => {
    const [a, b] = await two(config({}));
    await send("coder", 100);
    for (const node of [a, b]) node.start();
    await expect.poll(waiting, WHILE).toBe(0);
    expect([a.took.length, b.took.length].sort((x, y) => x - y)).toEqual([0, 100]);
    // What the other has handed back does not count as an attempt.
    expect(new Set([...a.attempts, ...b.attempts])).toEqual(new Set([1]));
    expect(Object.keys(await homes(store))).toEqual(["coder"]);
  });

  test("whoever touches no files is answered by both, and has no home", async () => {
    const [a, b] = await two(config({}));
    for (const node of [a, b]) expect(await node.here.isHere("main")).toBe(true);
    expect(await homes(store)).toEqual({});
    expect([...a.here.elsewhere(), ...b.here.elsewhere()]).toEqual([]);
  });

  test("a star is answered by both", async () => {
    const [a, b] = await two(config({ nodes: "*" }));
    for (const node of [a, b]) expect(await node.here.isHere("coder")).toBe(true);
    expect(await homes(store)).toEqual({});
  });

  test("another node keeps no place for it, claims nothing of it, and goes on with everybody else", async () => {
    const [a, b] = await two(config({}));
    expect(await a.here.isHere("coder")).toBe(true);
    await b.here.follow();
    expect([...b.here.elsewhere()]).toEqual(["coder"]);
    b.start();
    await expect.poll(() => b.place("main"), WHILE).toBe(true);
    expect(b.place("coder")).toBe(false);
    await send("coder", 70);
    await send("main", 3);
    await expect.poll(() => b.took, WHILE).toEqual(["main", "main", "main"]);
    await expect.poll(waiting, WHILE).toBe(70);
    // It is idle with work in the line that is not its own, and takes what comes meanwhile.
    await expect.poll(() => b.place("main"), WHILE).toBe(true);
    a.start();
    await expect.poll(waiting, WHILE).toBe(0);
    expect(a.took).toHaveLength(70);
    expect(b.took).toHaveLength(3);
  });

  test("the config moves it, its home follows, and stays when the config says nothing more", async () => {
    const [a, b] = await two(config({}));
    expect(await a.here.isHere("coder")).toBe(true);
    for (const node of [a, b]) node.configure(config({ nodes: ["b"] }));
    expect(await a.here.isHere("coder")).toBe(false);
    expect(await b.here.isHere("coder")).toBe(true);
    expect(await homes(store)).toEqual({ coder: "b home-b" });
    for (const node of [a, b]) node.configure(config({}));
    expect(await a.here.isHere("coder")).toBe(false);
    expect(await b.here.isHere("coder")).toBe(true);
    expect([...a.here.elsewhere()]).toEqual(["coder"]);
    expect([...b.here.elsewhere()]).toEqual([]);
  });

  test("a label names whoever has it, and everybody's word is an agent's that has none", async () => {
    const [a, b] = await two({ ...config({}, { other: { nodes: ["b"] } }), nodes: ["gpu"] });
    for (const agent of ["main", "coder"]) {
      expect(await a.here.isHere(agent)).toBe(true);
      expect(await b.here.isHere(agent)).toBe(false);
    }
    expect(await b.here.isHere("other")).toBe(true);
    expect(await homes(store)).toEqual({ coder: "a home-a", other: "b home-b" });
  });

  test("an agent waits for its node when that is gone, which is told once; the others go on", async () => {
    const [a, b] = await two(config({}, { far: { tools: "minimal", nodes: ["gpu"] }, half: { nodes: ["b", "moon"] } }));
    await a.here.isHere("coder");
    await b.here.follow();
    expect(b.log.lines).toEqual([
      `warn nodes of agents are not there {"agents":"half","problem":"no node that is there has the name or label moon"}`,
    ]);
    await place.elapse(LEASE_MS + 1);
    await join(store, B);
    await b.here.follow();
    await b.here.follow();
    const problems = ["coder", "far", "half", "main"].map((id) => b.here.problemOf({ id, nodes: b.agents.get(id)?.nodes ?? null }));
    expect(problems).toEqual([
      "its turns wait: its files are on the node a, which is not there",
      "its turns wait: no node that is there has the name or label gpu",
      null,
      null,
    ]);
    expect(b.log.lines.slice(1).sort()).toEqual([
      `warn nodes of agents are not there {"agents":"coder","problem":"${problems[0]}"}`,
      `warn nodes of agents are not there {"agents":"far","problem":"${problems[1]}"}`,
    ]);
    expect(await b.here.isHere("coder")).toBe(false);
    await join(store, A);
    await b.here.follow();
    expect(b.here.problemOf({ id: "coder", nodes: null })).toBeNull();
    expect(b.log.lines.filter((line) => line.startsWith("info nodes of agents are there again"))).toHaveLength(2);
  });

  test("files that an agent has left here are here, also where nobody has kept count before", async () => {
    await join(store, B);
    const b = new Taker(store, B, config({}, { free: { tools: "minimal" }, star: { nodes: "*" } }));
    for (const agent of ["coder", "free", "star"]) b.files.add(agent);
    await b.here.begin();
    expect(await homes(store)).toEqual({ coder: "b home-b" });
  });

  test("a turn asks the database nothing where its agent is known", async () => {
    const [a, b] = await two(config({}));
    await a.here.isHere("coder");
    await b.here.isHere("coder");
    await place.tamper("alter table agent_homes rename to hidden");
    expect(await a.here.isHere("coder")).toBe(true);
    expect(await b.here.isHere("coder")).toBe(false);
    a.configure(config({}));
    await expect(a.here.isHere("coder")).rejects.toThrow();
  });
});

test("a database file has one node: nothing is left to others, and nobody has a home", async () => {
  const place = sqlitePlace();
  try {
    const store = await place.open();
    await join(store, A);
    await settleHomes(store, ["coder"], B);
    const a = new Taker(store, A, config({}, { far: { nodes: ["moon"] } }));
    await a.here.begin();
    for (const agent of ["coder", "far", "main"]) expect(await a.here.isHere(agent)).toBe(true);
    await a.here.follow();
    expect([...a.here.elsewhere()]).toEqual([]);
    expect(a.here.problemOf({ id: "far", nodes: ["moon"] })).toBeNull();
    expect(a.log.lines).toEqual([
      `warn nodes of agents are not there {"agents":"far","problem":"no node that is there has the name or label moon"}`,
    ]);
    expect(await homes(store)).toEqual({ coder: "b home-b" });
  } finally {
    await place.remove();
  }
});

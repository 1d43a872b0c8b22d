import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { modelRegistry } from "../src/abilities/models/model-registry.ts";
import { offlineProvider } from "../src/abilities/models/offline-model.ts";
import { restartTurns } from "../src/acts/restart-turns.ts";
import { TURN_WORK } from "../src/acts/work-kinds.ts";
import { configSchema } from "../src/contract/config.ts";
import type { Address } from "../src/deciders/routing/address.ts";
import { routeNamed } from "../src/deciders/routing/route.ts";
import { sessionKey } from "../src/deciders/routing/session-key.ts";
import { Dispatcher, type Handler } from "../src/drivers/dispatch/dispatcher.ts";
import { takeTurn } from "../src/drivers/dispatch/take-turn.ts";
import { Upkeep } from "../src/drivers/dispatch/upkeep.ts";
import { systemClock } from "../src/kernel/clock.ts";

import { idSource } from "../src/kernel/ids.ts";
import type { Log } from "../src/kernel/log.ts";
import { type Model, type ModelRequest, wordsOf } from "../src/kernel/model.ts";
import { systemRandom } from "../src/kernel/random.ts";
import { AgentRegistry } from "../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../src/records/agents/revision.ts";
import { readRun } from "../src/records/sessions/runs.ts";
import { openStore, type Store } from "../src/store/store.ts";
import type { WorkQueue } from "../src/store/work-queue.ts";
import { admitMessage } from "./admit-message.ts";
import { taskParts } from "./task-parts.ts";
import { turnParts } from "./turn-parts.ts";

const newId = idSource(systemClock, systemRandom);
const folder = mkdtempSync(join(tmpdir(), "guildhall-dispatch-"));
/** On a busy machine. */
const WHILE = { timeout: 15_000, interval: 20 };
const quiet: Log = { info: () => {}, warn: () => {}, error: () => {} };
let store: Store;
beforeAll(async () => {
  store = await openStore(`sqlite:${join(folder, "state.db")}`);
});
afterEach(() => void vi.useRealTimers());
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Answers as the test tells it to. */
function scripted(answer: (request: ModelRequest, signal: AbortSignal) => Promise<string>): Model {
  return {
    name: "test/model",
    scripted: true,
    async *stream(request, signal) {
      yield { kind: "text", text: await answer(request, signal) };
    },
  };
}

const config = configSchema.parse({
  personality: "brief",
  agents: { main: { model: "test/model" }, demo: {}, lost: { model: "nobody/knows" } },
});

function dispatcher(model: Model, options: { limit?: number; leaseMs?: number; turnMs?: number; agents?: AgentRegistry } = {}): Dispatcher {
  const models = modelRegistry([offlineProvider, { name: "test", model: () => model, models: () => [] }]);
  const agents = options.agents ?? new AgentRegistry(revisionWithoutFile(config));
  const turn = takeTurn({ ...turnParts(store, newId, folder), delivers: () => false, agents, models, turnMs: options.turnMs ?? 60_000 });
  return withHandlers({ [TURN_WORK]: turn }, options);
}

function withHandlers(
  handlers: Record<string, Handler>,
  options: { limit?: number; leaseMs?: number; tenants?: number; queue?: WorkQueue } = {},
): Dispatcher {
  return new Dispatcher({
    queue: options.queue ?? store.queue,
    owner: "test",
    handlers,
    tenants: () => options.tenants ?? 1,
    log: quiet,
    limit: () => options.limit ?? 8,
    leaseMs: options.leaseMs ?? 60_000,
  });
}

let messages = 0;
async function send(agent: string, peer: string, text: string): Promise<string> {
  const address: Address = { platform: "test", account: "default", guild: null, chat: peer, topic: null, chatType: "dm", peer, roles: [] };
  const decision = routeNamed(config.agents, agent);
  const message = { externalId: `m${messages++}`, address, text, decision, sessionKey: sessionKey(agent, address) };
  return (await admitMessage(store, newId, message)).runId;
}

const statusOf = async (runId: string) => (await readRun(store.read, runId))?.status;
const isOver = (runId: string) => vi.waitFor(async () => expect(["completed", "failed"]).toContain(await statusOf(runId)), WHILE);

test("turns of a conversation run one after another and see what was said before; other conversations do not wait", async () => {
  const seen: string[] = [];
  const slow = scripted(async ({ system, messages: said }) => {
    seen.push(`${system}: ${said.map(wordsOf).join(" | ")}`);
    if (wordsOf(said.at(-1)) === "one") await vi.waitFor(() => expect(seen).toContain("brief: three"), WHILE);
    return `re ${wordsOf(said.at(-1))}`;
  });
  const runs = [await send("main", "a", "one"), await send("main", "a", "two"), await send("main", "b", "three")];
  const node = dispatcher(slow);
  node.start();
  for (const run of runs) await isOver(run);
  await node.stop(1_000);
  expect(seen.toSorted()).toEqual(["brief: one", "brief: one | re one | two", "brief: three"]);
  expect(seen.at(-1)).toBe("brief: one | re one | two");
});

test("never more than the limit run at once", async () => {
  let now = 0;
  let most = 0;
  const counting = scripted(async () => {
    most = Math.max(most, ++now);
    await sleep(30);
    now--;
    return "done";
  });
  const runs = await Promise.all(Array.from({ length: 7 }, (_, index) => send("main", `crowd${index}`, "x")));
  const node = dispatcher(counting, { limit: 3 });
  node.start();
  for (const run of runs) await isOver(run);
  await node.stop(1_000);
  expect(most).toBe(3);
});

test("a restarted turn stops here at once, begins again, and counts no attempt; it is answered once", async () => {
  const asked: AbortSignal[] = [];
  const stuck = scripted(async (_request, signal) => {
    asked.push(signal);
    if (asked.length === 2) return "second";
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    return "first";
  });
  const run = await send("main", "again", "x");
  const node = dispatcher(stuck);
  node.start();
  await vi.waitFor(() => expect(asked).toHaveLength(1), WHILE);
  expect(await restartTurns(store, "demo", "operator")).toEqual([]);
  expect(await restartTurns(store, "main", "operator")).toEqual([run]);
  await node.letGo();
  await isOver(run);
  await node.stop(1_000);
  expect(asked).toHaveLength(2);
  expect(asked[0]?.aborted).toBe(true);
  expect(await readRun(store.read, run)).toMatchObject({ status: "completed", reply: { text: "second" } });
});

test("a turn ends with the agent it began with; the next one knows the new config", async () => {
  const seen: (string | null)[] = [];
  const slow = scripted(async ({ system }) => {
    seen.push(system);
    if (seen.length === 1) agents.apply(revisionWithoutFile({ ...config, personality: "another" }));
    return "done";
  });
  const agents = new AgentRegistry(revisionWithoutFile(config));
  const runs = [await send("main", "held", "x"), await send("main", "held", "y")];
  const node = dispatcher(slow, { agents });
  node.start();
  for (const run of runs) await isOver(run);
  await node.stop(1_000);
  expect(seen).toEqual(["brief", "another"]);
});

test("an agent with an unknown model fails its own runs, and no other agent's", async () => {
  const [lost, fine] = [await send("lost", "x", "hello"), await send("demo", "x", "hello")];
  const node = dispatcher(scripted(async () => "unused"));
  node.start();
  await isOver(lost);
  await isOver(fine);
  await node.stop(1_000);
  expect(await readRun(store.read, lost)).toMatchObject({ status: "failed", error: { code: "model.unknown" } });
  expect(await statusOf(fine)).toBe("completed");
});

test("a model that fails once is asked again after a while", async () => {
  let asked = 0;
  const flaky = scripted(async () => {
    if (++asked === 1) throw new Error("overloaded");
    return "there you are";
  });
  const run = await send("main", "flaky", "x");
  const node = dispatcher(flaky);
  node.start();
  await isOver(run);
  await node.stop(1_000);
  expect(await readRun(store.read, run)).toMatchObject({ status: "completed", reply: { text: "there you are" } });
});

test("a turn that takes too long is given up", async () => {
  const run = await send("main", "endless", "x");
  const node = dispatcher(
    scripted((_request, signal) => sleep(60_000, "late", { signal })),
    { turnMs: 50 },
  );
  node.start();
  await vi.waitFor(async () => {
    const events = await store.ledger.read(0, 1_000, ["run", run]);
    expect(events.at(-1)).toMatchObject({
      type: "turn.failed",
      data: { code: "turn.too_long", message: "the turn did not end within 0.05 s" },
    });
  }, WHILE);
  await node.stop(1_000);
  await store.transact("clear", (tx) => tx.run`delete from work`);
});

/** Leases are as old as the test says; what is asked of the database takes the time that it takes. */
const LEASE_MS = 60_000;
function holdClocks(): void {
  vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
}
function elapse(part: number): void {
  vi.advanceTimersByTime(part * LEASE_MS);
}

test("a claim is kept alive while its item runs, and the item is stopped when the claim is lost", async () => {
  let heldBy: AbortSignal | undefined;
  const handler: Handler = async (_item, lost) => {
    heldBy = lost;
    await sleep(60_000, undefined, { signal: lost }).catch(() => {});
  };
  const leaseUntil = async () =>
    (await store.read.get<{ until: number }>`select lease_until as until from work where kind = 'hold'`)?.until;
  await store.transact("enqueue", (tx) => store.queue.enqueue(tx, { kind: "hold", payload: null }));
  holdClocks();
  const node = withHandlers({ hold: handler }, { leaseMs: LEASE_MS });
  node.start();
  await vi.waitFor(() => expect(heldBy).toBeDefined(), WHILE);
  const first = (await leaseUntil()) as number;
  const renewed = vi.spyOn(store.queue, "renew");
  for (let times = 1; times <= 6; times++) {
    elapse(0.35);
    await vi.waitFor(() => expect(renewed.mock.calls.length).toBeGreaterThanOrEqual(times), WHILE);
    await renewed.mock.results.at(-1)?.value;
  }
  renewed.mockRestore();
  expect(heldBy?.aborted).toBe(false);
  expect(await leaseUntil()).toBeGreaterThan(first);
  await store.transact("steal", (tx) => tx.run`update work set fence = fence + 1 where kind = 'hold'`);
  elapse(0.35);
  await vi.waitFor(() => expect(heldBy?.aborted).toBe(true), WHILE);
  await node.stop(100);
  await store.transact("clear", (tx) => tx.run`delete from work`);
});

test("an item is stopped, and not at the first silence, where the database does not hear that it is still ours", async () => {
  let heldBy: AbortSignal | undefined;
  const handler: Handler = async (_item, lost) => {
    heldBy = lost;
    await sleep(60_000, undefined, { signal: lost }).catch(() => {});
  };
  await store.transact("enqueue", (tx) => store.queue.enqueue(tx, { kind: "hold", payload: null }));
  holdClocks();
  const node = withHandlers({ hold: handler }, { leaseMs: LEASE_MS });
  const unanswered = vi.spyOn(store.queue, "renew").mockImplementation(() => new Promise(() => {}));
  node.start();
  await vi.waitFor(() => expect(heldBy).toBeDefined(), WHILE);
  elapse(0.7);
  expect(heldBy?.aborted).toBe(false);
  elapse(0.35);
  expect(heldBy?.aborted).toBe(true);
  unanswered.mockRestore();
  await node.stop(100);
  await store.transact("clear", (tx) => tx.run`delete from work`);
});

test("a claim whose answer came late is given up by when it was asked for, and claimed no further", async () => {
  let heldBy: AbortSignal | undefined;
  const ends = Promise.withResolvers<void>();
  const handler: Handler = async (_item, lost) => {
    heldBy = lost;
    await ends.promise;
  };
  await store.transact("enqueue", (tx) => store.queue.enqueue(tx, { kind: "hold", payload: null }));
  holdClocks();
  const claim = store.queue.claim.bind(store.queue);
  const late = vi.spyOn(store.queue, "claim").mockImplementation(async (...wanted) => {
    const items = await claim(...wanted);
    if (items.length > 0) elapse(0.5);
    return items;
  });
  const renewed = vi.spyOn(store.queue, "renew").mockImplementation(() => new Promise(() => {}));
  const node = withHandlers({ hold: handler }, { leaseMs: LEASE_MS });
  node.start();
  await vi.waitFor(() => expect(heldBy).toBeDefined(), WHILE);
  late.mockRestore();
  elapse(0.55);
  expect(heldBy?.aborted).toBe(true);
  renewed.mockClear();
  await node.letGo();
  expect(renewed).not.toHaveBeenCalled();
  renewed.mockRestore();
  ends.resolve();
  await node.stop(100);
  await store.transact("clear", (tx) => tx.run`delete from work`);
});

test("stopping waits for what runs, and takes nothing new", async () => {
  const quick = await send("main", "quick", "quick");
  const [asked, ends] = [vi.fn(), Promise.withResolvers<void>()];
  const model = scripted(async () => {
    asked();
    await ends.promise;
    return "done";
  });
  const node = dispatcher(model);
  node.start();
  await vi.waitFor(() => expect(asked).toHaveBeenCalled(), WHILE);
  const stopped = node.stop(60_000);
  const next = await send("main", "next", "next");
  ends.resolve();
  await stopped;
  expect(await statusOf(quick)).toBe("completed");
  expect(await statusOf(next)).toBe("queued");
  expect(asked).toHaveBeenCalledTimes(1);
  await store.transact("clear", (tx) => tx.run`delete from work`);
});

test("stopping hands what does not end back untouched", async () => {
  const stuck = await send("main", "stuck", "stuck");
  const node = dispatcher(scripted((_request, signal) => sleep(3_600_000, "late", { signal })));
  node.start();
  await vi.waitFor(async () => expect(await statusOf(stuck)).toBe("running"), WHILE);
  await node.stop(100);
  expect(await statusOf(stuck)).toBe("running");
  const [again] = await store.queue.claim("next", 1, 1_000, [TURN_WORK]);
  expect(again).toMatchObject({ attempt: 1, payload: { runId: stuck } });
  await store.transact("clear", (tx) => tx.run`delete from work`);
});

test("a place is kept only by a node that waits for work, within its limit, and never for somebody whom others wait behind", async () => {
  const begun: string[] = [];
  const ends = Promise.withResolvers<void>();
  const node = withHandlers(
    {
      [TURN_WORK]: async (item) => {
        begun.push(item.payload as string);
        await ends.promise;
        await store.queue.settleAll([item]);
      },
    },
    { limit: 2 },
  );
  expect(node.keepPlace("a")).toBeNull();
  node.start();
  await vi.waitFor(() => {
    const place = node.keepPlace("a");
    expect(place).not.toBeNull();
    place?.giveUp();
    place?.giveUp();
  }, WHILE);
  const places = [node.keepPlace("a"), node.keepPlace("a"), node.keepPlace("a")];
  expect(places.map((place) => place !== null)).toEqual([true, true, false]);
  for (const [index, place] of places.entries()) {
    if (!place) continue;
    const work = { kind: TURN_WORK, payload: `p${index}`, lane: [`kept ${index}`], tenant: { name: "a", weight: 1 } };
    const item = await store.transact("take", (tx) => store.queue.enqueueTaken(tx, work, place), "locked");
    if (item) place.begin(item);
    place.giveUp();
  }
  expect(begun).toEqual(["p0", "p1"]);
  expect(node.keepPlace("a")).toBeNull();
  ends.resolve();
  await vi.waitFor(async () => expect(await store.queue.counts()).toEqual({}), WHILE);
  await node.stop(1_000);
  expect(node.keepPlace("a")).toBeNull();
});

/** A node that waits for work. */
async function idle(node: Dispatcher): Promise<Dispatcher> {
  node.start();
  await vi.waitFor(() => {
    const place = node.keepPlace("anybody");
    expect(place).not.toBeNull();
    place?.giveUp();
  }, WHILE);
  return node;
}

test("places that are kept count for whose they are: a crowd of messages leaves room for others", async () => {
  const node = await idle(withHandlers({ [TURN_WORK]: async () => {} }, { limit: 8, tenants: 2 }));
  const places = Array.from({ length: 8 }, () => node.keepPlace("a"));
  expect(places.filter((place) => place !== null)).toHaveLength(6);
  const other = node.keepPlace("b");
  expect(other).not.toBeNull();
  for (const place of [...places, other]) place?.giveUp();
  await node.stop(1_000);
});

test("a place that is given up is taken at once by whoever waits for it", async () => {
  const begun = vi.fn();
  const node = await idle(
    withHandlers(
      {
        [TURN_WORK]: async (item) => {
          begun();
          await store.queue.settleAll([item]);
        },
      },
      { limit: 1 },
    ),
  );
  // Nothing else is told from here on, and it does not look for itself.
  const waits = vi
    .spyOn(store.queue, "wait")
    .mockImplementation((_seen, signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })));
  const place = node.keepPlace("a");
  await store.transact("add", (tx) => store.queue.enqueue(tx, { kind: TURN_WORK, payload: null }), "locked");
  // It has looked, and there was no room.
  await vi.waitFor(() => expect(waits).toHaveBeenCalled(), WHILE);
  expect(begun).not.toHaveBeenCalled();
  place?.giveUp();
  await vi.waitFor(() => expect(begun).toHaveBeenCalled(), WHILE);
  waits.mockRestore();
  await node.stop(1_000);
});

test("a node that cannot look for work keeps no place, and one that is stopped lets go of what it has taken, if it can", async () => {
  const waits = Promise.withResolvers<void>();
  const queue: WorkQueue = Object.create(store.queue, {
    version: { value: (topic?: "work" | "taken") => store.queue.version(topic) },
    waitForTaken: { value: (seen: number, signal: AbortSignal) => store.queue.waitForTaken(seen, signal) },
    claim: { value: async () => [] },
    wait: { value: () => waits.promise },
    handBack: { value: async () => Promise.reject(new Error("the store is closed")) },
  });
  const node = await idle(withHandlers({ [TURN_WORK]: async () => {} }, { queue }));
  const place = node.keepPlace("a");
  waits.reject(new Error("the store cannot be read"));
  const mayKeep = (): boolean => {
    const another = node.keepPlace("a");
    another?.giveUp();
    return another !== null;
  };
  await vi.waitFor(() => expect(mayKeep()).toBe(false), { ...WHILE, interval: 5 });
  await node.stop(10).catch(() => {});
  place?.begin({ id: 1, fence: 1, kind: TURN_WORK, payload: null, attempt: 1, maxAttempts: 5, tenant: "a" });
  // What nobody catches would end the process.
  await sleep(1);
});

test("upkeep turns dead letters into failed runs and seals what happened", async () => {
  const run = await send("main", "dead", "x");
  await store.queue.claim("gone", 1, 1, [TURN_WORK]);
  await store.transact("die", (tx) => tx.run`update work set lease_until = 0, attempts = max_attempts where kind = ${TURN_WORK}`);
  await new Upkeep(taskParts(store), "test", quiet).round();
  expect(await readRun(store.read, run)).toMatchObject({ status: "failed" });
  expect(await store.sealer.seal("test")).toBe(0);
  expect(await store.sealer.verify()).toMatchObject({ ok: true });
});

test("work that cannot be brought back, and seals that cannot be made, keep no chore from being done", async () => {
  await send("main", "left", "x");
  await store.queue.claim("gone", 1, 0, [TURN_WORK]);
  const broken = [
    vi.spyOn(store.queue, "reap").mockRejectedValue(new Error("broken")),
    vi.spyOn(store.sealer, "seal").mockRejectedValue(new Error("broken")),
  ];
  const warned: unknown[] = [];
  const log: Log = { ...quiet, warn: (_text, fields) => warned.push(fields?.chore) };
  let chores = 0;
  const upkeep = new Upkeep(taskParts(store), "test", log, [{ name: "chore", run: async () => chores++ }]);
  // What was sealed a moment ago is not sealed again.
  await vi.waitFor(async () => {
    await upkeep.round();
    expect(warned).toContain("seals");
  }, WHILE);
  expect(chores).toBeGreaterThan(0);
  expect(warned).toContain("work that was left");
  for (const spy of broken) spy.mockRestore();
  await store.transact("clear", (tx) => tx.run`delete from work`);
});

test("a dead letter that cannot be buried keeps nobody else from being served", async () => {
  const [, run] = [await send("main", "broken", "x"), await send("main", "dead too", "x")];
  await store.queue.claim("gone", 2, 1, [TURN_WORK]);
  await store.transact("die", async (tx) => {
    await tx.run`update work set lease_until = 0, attempts = max_attempts`;
    await tx.run`update work set payload = 'null' where id = (select min(id) from work)`;
  });
  let chores = 0;
  await new Upkeep(taskParts(store), "test", quiet, [{ name: "chore", run: async () => chores++ }]).round();
  expect(chores).toBe(1);
  expect(await readRun(store.read, run)).toMatchObject({ status: "failed" });
  await store.transact("clear", (tx) => tx.run`delete from work`);
});

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Dispatcher } from "../../src/drivers/dispatch/dispatcher.ts";
import type { Store } from "../../src/store/store.ts";
import { WAKE_TOPICS, type WakeTopic } from "../../src/store/wake.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { quiet } from "../turn-parts.ts";

/** On a busy machine. */
const WHILE = { timeout: 20_000, interval: 20 };

/** Two nodes on one PostgreSQL. On SQLite there is one, and nobody else to tell. */
describe("what nodes on PostgreSQL tell each other of work", () => {
  let place: StorePlace;
  let here: Store;
  let there: Store;
  const running: Dispatcher[] = [];

  beforeEach(async () => {
    place = postgresPlace();
    [here, there] = [await place.open(), await place.open()];
    await heard("mail");
  });
  afterEach(async () => {
    for (const node of running.splice(0)) await node.stop(0);
    await place.remove();
  });

  /** Whoever hears this has heard whatever was told before: hints come in their order. */
  async function heard(topic: WakeTopic): Promise<void> {
    const before = there.wake.version(topic);
    await expect
      .poll(async () => {
        await here.transact("hint", async (tx) => {
          await tx.get`select 1`;
          tx.hint(topic);
        });
        return there.wake.version(topic);
      }, WHILE)
      .toBeGreaterThan(before);
  }

  const add = (store: Store, count: number, more: { readonly delayMs?: number; readonly agent?: string } = {}): Promise<void> =>
    store.transact(
      "add",
      async (tx) => {
        const { agent = "a", ...work } = more;
        for (let index = 0; index < count; index++)
          await store.queue.enqueue(tx, { kind: "turn", payload: index, tenant: { name: agent, weight: 1 }, ...work });
      },
      "locked",
    );

  /** A node with so many places; `takes`: how long it works on each. */
  function node(store: Store, limit: number, takes: () => Promise<void> = async () => {}, elsewhere: readonly string[] = []) {
    const did: ClaimedWork[] = [];
    const handler = async (item: ClaimedWork): Promise<void> => {
      did.push(item);
      await takes();
      await store.queue.settleAll([item]);
    };
    const dispatcher = new Dispatcher({
      queue: store.queue,
      owner: store === here ? "here" : "there",
      handlers: { turn: handler },
      log: quiet,
      limit: () => limit,
      elsewhere: () => new Set(elsewhere),
      leaseMs: 60_000,
    });
    running.push(dispatcher);
    dispatcher.start();
    return did;
  }

  const isDone = (): Promise<void> => expect.poll(async () => here.queue.counts(), WHILE).toEqual({});

  test("what a node adds and has a place for wakes nobody else; what it has none for is told at once", async () => {
    const ends = Promise.withResolvers<void>();
    const did = node(here, 2, () => ends.promise);
    const before = there.wake.version("work");
    await add(here, 1);
    await expect.poll(() => did.length, WHILE).toBe(1);
    await heard("mail");
    expect(there.wake.version("work")).toBe(before);
    await add(here, 1);
    await expect.poll(() => did.length, WHILE).toBe(2);
    await heard("mail");
    const full = there.wake.version("work");
    await add(here, 1);
    await expect.poll(() => there.wake.version("work"), WHILE).toBeGreaterThan(full);
    expect(did).toHaveLength(2);
    ends.resolve();
    await isDone();
  });

  test("of more than it has places for, it takes what it can and offers the rest", async () => {
    const ends = Promise.withResolvers<void>();
    const [ours, theirs] = [node(here, 2, () => ends.promise), node(there, 8)];
    // It looks for itself no sooner than in a second; until then it is told.
    await add(here, 5);
    await expect.poll(() => theirs.length, WHILE).toBe(3);
    expect(ours).toHaveLength(2);
    ends.resolve();
    await isDone();
  });

  test("a node that became full with more to do says so, though it had a place when each was added", async () => {
    const ends = Promise.withResolvers<void>();
    const before = there.wake.version("work");
    const leave = here.queue.watch.addTaker(() => true);
    await add(here, 5);
    leave();
    await heard("mail");
    expect(there.wake.version("work")).toBe(before);
    const did = node(here, 2, () => ends.promise);
    await expect.poll(() => did.length, WHILE).toBe(2);
    await expect.poll(() => there.wake.version("work"), WHILE).toBeGreaterThan(before);
    ends.resolve();
    await isDone();
  });

  test("work of an agent that belongs elsewhere is told to the others, however many places there are", async () => {
    node(here, 8, undefined, ["theirs"]);
    const before = there.wake.version("work");
    await add(here, 1, { agent: "ours" });
    await isDone();
    await heard("mail");
    expect(there.wake.version("work")).toBe(before);
    await add(here, 1, { agent: "theirs" });
    await expect.poll(() => there.wake.version("work"), WHILE).toBeGreaterThan(before);
    const did = node(there, 8);
    await expect.poll(() => did.map(({ tenant }) => tenant), WHILE).toEqual(["theirs"]);
  });

  test("what a node left that died before it could claim it is found by the next look of another", async () => {
    const did = node(there, 8);
    here.queue.watch.addTaker(() => true);
    await add(here, 3);
    await expect.poll(() => did.length, WHILE).toBe(3);
  });

  test("the pulse of a node tells whoever waits there for work", async () => {
    here.queue.watch.addTaker(() => true);
    await add(here, 1);
    const before = there.wake.version("work");
    await expect
      .poll(async () => {
        await there.pulse.ask([]);
        return there.wake.version("work");
      }, WHILE)
      .toBeGreaterThan(before);
  });

  test("what a node parks for a moment it finds on time, and not with its next look", async () => {
    const did = node(here, 8);
    // Whoever has just heard from a pulse that there is nothing does not look.
    const pulse = setInterval(() => here.queue.watch.heard({ ready: 0 }), 100);
    for (let round = 1; round <= 4; round++) {
      await add(here, 1, { delayMs: 100 });
      await expect.poll(() => did.length, WHILE).toBe(round);
    }
    clearInterval(pulse);
  });

  test("what a node hands back, because it stops or for another, is told to the others, whatever else it could take", async () => {
    const did = node(here, 8, () => new Promise(() => {}));
    here.queue.watch.addTaker((kind) => kind === undefined || kind === "delivery");
    await add(here, 1);
    await expect.poll(() => did.length, WHILE).toBe(1);
    await heard("mail");
    const before = there.wake.version("work");
    await running.shift()?.stop(0);
    await heard("mail");
    expect(there.wake.version("work")).toBeGreaterThan(before);
    expect(await there.queue.claim("there", 1, 60_000)).toHaveLength(1);
  });

  test("what was parked, and is due where there is no place for it, is told to the others", async () => {
    const ends = Promise.withResolvers<void>();
    const did = node(here, 1, () => ends.promise);
    await add(here, 1);
    await expect.poll(() => did.length, WHILE).toBe(1);
    await heard("mail");
    const theirs = there.wake.version("work");
    await add(here, 1, { delayMs: 50 });
    await expect.poll(() => there.wake.version("work"), WHILE).toBeGreaterThan(theirs);
    expect(did).toHaveLength(1);
    ends.resolve();
    await isDone();
  });

  test("whoever listens again looks after everything that may have been said meanwhile", async () => {
    const before = WAKE_TOPICS.map((topic) => there.wake.version(topic));
    await place.tamper(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like 'LISTEN%' and datname = current_database()",
    );
    await expect.poll(() => WAKE_TOPICS.filter((topic, index) => there.wake.version(topic) === before[index]), WHILE).toEqual([]);
  });

  test("events are told to other nodes only while somebody follows them there", async () => {
    const tell = (): Promise<unknown> =>
      here.transact("tell", (tx) => here.ledger.append(tx, { type: "daemon.started", actor: "x", subject: ["node", "x"] }));
    const before = there.wake.version("ledger");
    await tell();
    await heard("mail");
    expect(there.wake.version("ledger")).toBe(before);
    const stopped = new AbortController();
    const seen: number[] = [];
    const following = (async () => {
      for await (const event of there.follow(0, stopped.signal)) seen.push(event.seq);
    })();
    await expect
      .poll(async () => {
        await tell();
        return there.wake.version("ledger");
      }, WHILE)
      .toBeGreaterThan(before);
    await expect.poll(async () => seen.length, WHILE).toBe((await here.ledger.read(0, 1_000)).length);
    stopped.abort();
    await following;
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import type { Claim } from "../../src/store/work-queue.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { runsOf, SEED } from "./seed.ts";

interface Item {
  readonly id: number;
  readonly lane: string | null;
  readonly priority: number;
  readonly order: number;
  state: "waiting" | "running" | "parked" | "dead";
  attempts: number;
  fence: number;
  leaseUntil: number;
  runAt: number;
  woken: boolean;
}

/** The queue as one would explain it: a list of items; a lane's first unfinished item is the only one that may run. */
interface Model {
  now: number;
  items: Item[];
  claims: Claim[];
  entered: number;
}

interface Real {
  store: Store;
  place: StorePlace;
}

const TTL = 10_000;
const MAX_ATTEMPTS = 3;
const BACKOFF = 5_000;
const PARKED = 30_000;

const isHead = (model: Model, item: Item): boolean => item.lane === null || model.items.find((other) => other.lane === item.lane) === item;

const claimable = (model: Model): Item[] =>
  model.items
    .filter((item) => item.state === "waiting" && isHead(model, item))
    .sort((a, b) => b.priority - a.priority || a.runAt - b.runAt || a.id - b.id);

const owned = (model: Model, claim: Claim): Item | undefined =>
  model.items.find((item) => item.id === claim.id && item.fence === claim.fence && item.state === "running");

class Enqueue implements fc.AsyncCommand<Model, Real> {
  readonly lane: string | null;
  readonly priority: number;
  constructor(lane: string | null, priority: number) {
    this.lane = lane;
    this.priority = priority;
  }
  check = () => true;
  async run(model: Model, { store }: Real): Promise<void> {
    const id = await store.transact("enqueue", (tx) =>
      store.queue.enqueue(tx, {
        kind: "test",
        payload: null,
        priority: this.priority,
        maxAttempts: MAX_ATTEMPTS,
        ...(this.lane ? { lane: [this.lane] } : {}),
      }),
    );
    model.items.push({
      id,
      lane: this.lane,
      priority: this.priority,
      order: model.entered++,
      state: "waiting",
      attempts: 0,
      fence: 0,
      leaseUntil: 0,
      runAt: model.now,
      woken: false,
    });
  }
  toString = () => `enqueue(${this.lane}, ${this.priority})`;
}

class ClaimSome implements fc.AsyncCommand<Model, Real> {
  readonly limit: number;
  constructor(limit: number) {
    this.limit = limit;
  }
  check = () => true;
  async run(model: Model, { store }: Real): Promise<void> {
    const taken = await store.queue.claim("me", this.limit, TTL);
    const expected = claimable(model).slice(0, this.limit);
    // Real milliseconds pass between enqueues, which the model's clock does not know: within one priority the set is compared.
    expect(taken).toHaveLength(expected.length);
    for (const claim of taken) {
      const item = model.items.find((candidate) => candidate.id === claim.id) as Item;
      expect(claimable(model)).toContain(item);
      expect(claim.fence).toBeGreaterThan(item.fence);
      expect(claim.attempt).toBe(item.attempts + 1);
      Object.assign(item, { state: "running", fence: claim.fence, attempts: claim.attempt, leaseUntil: model.now + TTL, woken: false });
      model.claims.push({ id: claim.id, fence: claim.fence });
    }
    const priorities = (ids: readonly number[]) => ids.map((id) => model.items.find((item) => item.id === id)?.priority).sort();
    expect(priorities(taken.map((claim) => claim.id))).toEqual(priorities(expected.map((item) => item.id)));
  }
  toString = () => `claim(${this.limit})`;
}

type Verb = "settle" | "settleAll" | "retry" | "park" | "renew" | "handBack" | "unpark" | "cancel";

/** Any verb with any claim ever made: only the newest claim of a running item counts. */
class Act implements fc.AsyncCommand<Model, Real> {
  readonly verb: Verb;
  readonly pick: number;
  constructor(verb: Verb, pick: number) {
    this.verb = verb;
    this.pick = pick;
  }
  check = (model: Readonly<Model>) => model.claims.length > 0;
  async run(model: Model, { store }: Real): Promise<void> {
    const claim = model.claims[this.pick % model.claims.length] as Claim;
    const item = owned(model, claim);
    const { queue } = store;
    const attempt = <T>(body: (tx: Parameters<Parameters<Store["transact"]>[1]>[0]) => Promise<T>) =>
      store.transact(this.verb, body).then(
        (value) => ({ value }),
        () => null,
      );
    const remove = (gone: Item | undefined) => {
      model.items = model.items.filter((other) => other !== gone);
    };
    switch (this.verb) {
      case "settle":
        expect((await attempt((tx) => queue.settle(tx, claim))) !== null).toBe(item !== undefined);
        return remove(item);
      case "settleAll":
        expect((await queue.settleAll([claim])).has(claim.id)).toBe(item !== undefined);
        return remove(item);
      case "retry": {
        const answer = await attempt((tx) => queue.retry(tx, claim, "no", BACKOFF));
        expect(answer?.value).toBe(item === undefined ? undefined : item.attempts >= MAX_ATTEMPTS ? "dead" : "later");
        if (item) Object.assign(item, answer?.value === "dead" ? { state: "dead" } : { state: "parked", runAt: model.now + BACKOFF });
        return;
      }
      case "park":
        expect((await attempt((tx) => queue.park(tx, claim, PARKED))) !== null).toBe(item !== undefined);
        if (item)
          Object.assign(item, {
            state: item.woken ? "waiting" : "parked",
            attempts: 0,
            runAt: item.woken ? model.now : model.now + PARKED,
            woken: false,
          });
        return;
      case "renew": {
        const alive = item !== undefined && item.leaseUntil > model.now;
        expect((await queue.renew([claim], TTL)).has(claim.id)).toBe(alive);
        if (alive) item.leaseUntil = model.now + TTL;
        return;
      }
      case "handBack":
        expect(await queue.handBack([claim])).toBe(item ? 1 : 0);
        if (item) Object.assign(item, { state: "waiting", attempts: item.attempts - 1 });
        return;
      case "unpark": {
        const target = model.items.find(
          (other) =>
            other.id === claim.id && (["parked", "running"].includes(other.state) || (other.state === "waiting" && isHead(model, other))),
        );
        expect((await attempt((tx) => queue.unpark(tx, claim.id)))?.value).toBe(target !== undefined);
        if (target?.state === "parked") Object.assign(target, { state: "waiting", runAt: model.now });
        else if (target?.state === "running") target.woken = true;
        return;
      }
      case "cancel": {
        const target = model.items.find((other) => other.id === claim.id);
        expect((await attempt((tx) => queue.cancel(tx, claim.id)))?.value).toBe(target !== undefined);
        return remove(target);
      }
    }
  }
  toString = () => `${this.verb}(#${this.pick})`;
}

class ElapseAndReap implements fc.AsyncCommand<Model, Real> {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
  check = () => true;
  async run(model: Model, { store, place }: Real): Promise<void> {
    await place.elapse(this.ms);
    model.now += this.ms;
    const lost = model.items.filter((item) => item.state === "running" && item.leaseUntil <= model.now);
    const buried = lost.filter((item) => item.attempts >= MAX_ATTEMPTS);
    const due = model.items.filter((item) => item.state === "parked" && item.runAt <= model.now);
    expect(await store.queue.reap()).toMatchObject({ revived: lost.length - buried.length + due.length, buried: buried.length });
    for (const item of due) item.state = "waiting";
    for (const item of lost) Object.assign(item, buried.includes(item) ? { state: "dead" } : { state: "waiting", runAt: model.now });
  }
  toString = () => `elapse(${this.ms})`;
}

class CountAll implements fc.AsyncCommand<Model, Real> {
  check = () => true;
  async run(model: Model, { store }: Real): Promise<void> {
    const counts = await store.queue.counts();
    const expected = { running: 0, parked: 0, dead: 0, ready: 0, queued: 0 };
    for (const item of model.items) expected[item.state === "waiting" ? (isHead(model, item) ? "ready" : "queued") : item.state]++;
    expect({ running: 0, parked: 0, dead: 0, ready: 0, queued: 0, ...counts }).toEqual(expected);
  }
  toString = () => "count";
}

const verbs = fc.constantFrom<Verb>("settle", "settleAll", "retry", "park", "renew", "handBack", "unpark", "cancel");
const commands = fc.commands(
  [
    fc.tuple(fc.constantFrom(null, "l1", "l2"), fc.constantFrom(0, 0, 5)).map(([lane, priority]) => new Enqueue(lane, priority)),
    fc.constantFrom(1, 3, 9).map((limit) => new ClaimSome(limit)),
    fc.tuple(verbs, fc.nat(30)).map(([verb, pick]) => new Act(verb, pick)),
    fc.constantFrom(4_000, 7_000, 12_000).map((ms) => new ElapseAndReap(ms)),
    fc.constant(new CountAll()),
  ],
  { maxCommands: 60 },
);

describe.each(PLACES)("the work queue on %s behaves like its model", (_name, makePlace) => {
  test("whatever is asked, in whatever order", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const place = makePlace();
        try {
          const store = await place.open();
          await fc.asyncModelRun(() => ({ model: { now: 0, items: [], claims: [], entered: 0 }, real: { store, place } }), sequence);
        } finally {
          await place.remove();
        }
      }),
      { seed: SEED, numRuns: runsOf(makePlace, 120, 20) },
    );
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { Elapse } from "./elapse.ts";
import { runsOf, SEED } from "./seed.ts";

interface Entry {
  request: string;
  state: "in-progress" | "done";
  fence: number;
  leaseUntil: number;
  expiresAt: number;
  result: unknown;
}

interface Model {
  now: number;
  entries: Map<string, Entry>;
  fences: Map<string, number[]>;
}

interface Real {
  store: Store;
  place: StorePlace;
}

const LEASE = 10_000;
const KEEP = 100_000;
const requestOf = (key: string, request: string) => ({ scope: ["who"], key, request });

class Begin implements fc.AsyncCommand<Model, Real> {
  readonly key: string;
  readonly request: string;
  constructor(key: string, request: string) {
    this.key = key;
    this.request = request;
  }
  check = () => true;
  async run(model: Model, { store }: Real): Promise<void> {
    const begun = await store.idempotency.begin(requestOf(this.key, this.request), LEASE, KEEP);
    const entry = model.entries.get(this.key);
    const expired = entry !== undefined && entry.expiresAt <= model.now;
    const abandoned = entry?.state === "in-progress" && entry.leaseUntil <= model.now;
    const free = entry === undefined || (expired && (entry.state === "done" || abandoned)) || (abandoned && entry.request === this.request);
    if (free) {
      expect(begun.state).toBe("started");
      if (begun.state !== "started") return;
      expect(begun.fence).toBeGreaterThan(entry?.fence ?? 0);
      const fresh = {
        request: this.request,
        state: "in-progress" as const,
        fence: begun.fence,
        leaseUntil: model.now + LEASE,
        expiresAt: model.now + KEEP,
        result: null,
      };
      model.entries.set(this.key, fresh);
      model.fences.set(this.key, [...(model.fences.get(this.key) ?? []), begun.fence]);
    } else if (!expired && entry.request !== this.request) expect(begun).toEqual({ state: "conflict" });
    else if (entry.state === "done") expect(begun).toEqual({ state: "replay", result: entry.result });
    else expect(begun).toEqual({ state: "in-progress" });
  }
  toString = () => `begin ${this.key} ${this.request}`;
}

class Finish implements fc.AsyncCommand<Model, Real> {
  readonly key: string;
  readonly pick: number;
  constructor(key: string, pick: number) {
    this.key = key;
    this.pick = pick;
  }
  check = (model: Readonly<Model>) => (model.fences.get(this.key)?.length ?? 0) > 0;
  async run(model: Model, { store }: Real): Promise<void> {
    const fences = model.fences.get(this.key) as number[];
    const fence = fences[this.pick % fences.length] as number;
    const entry = model.entries.get(this.key);
    const valid = entry?.fence === fence && entry.state === "in-progress";
    const finished = await store
      .transact("finish", (tx) => store.idempotency.finish(tx, requestOf(this.key, "any"), fence, { by: fence }))
      .then(
        () => true,
        () => false,
      );
    expect(finished).toBe(valid);
    if (valid) Object.assign(entry, { state: "done", result: { by: fence } });
  }
  toString = () => `finish ${this.key} #${this.pick}`;
}

class Sweep implements fc.AsyncCommand<Model, Real> {
  check = () => true;
  async run(model: Model, { store }: Real): Promise<void> {
    const gone = [...model.entries].filter(
      ([, entry]) => entry.expiresAt <= model.now && (entry.state === "done" || entry.leaseUntil <= model.now),
    );
    expect(await store.idempotency.sweep()).toBe(gone.length);
    for (const [key] of gone) model.entries.delete(key);
  }
  toString = () => "sweep";
}

const keys = fc.constantFrom("k1", "k2");
const commands = fc.commands(
  [
    fc.tuple(keys, fc.constantFrom("r1", "r2")).map(([key, request]) => new Begin(key, request)),
    fc.tuple(keys, fc.nat(10)).map(([key, pick]) => new Finish(key, pick)),
    fc.constantFrom(4_000, 12_000, 110_000).map((ms) => new Elapse(ms)),
    fc.constant(new Sweep()),
  ],
  { maxCommands: 40 },
);

describe.each(PLACES)("idempotency on %s behaves like its model", (_name, makePlace) => {
  test("whatever is asked, in whatever order", async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const place = makePlace();
        try {
          const store = await place.open();
          await fc.asyncModelRun(() => ({ model: { now: 0, entries: new Map(), fences: new Map() }, real: { store, place } }), sequence);
        } finally {
          await place.remove();
        }
      }),
      { seed: SEED, numRuns: runsOf(makePlace, 60, 15) },
    );
  });
});

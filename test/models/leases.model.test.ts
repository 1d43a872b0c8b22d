import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { Elapse } from "./elapse.ts";
import { runsOf, SEED } from "./seed.ts";

interface Held {
  holder: string;
  fence: number;
  until: number;
}

interface Model {
  now: number;
  leases: Map<string, Held>;
  /** Every fence ever given out, by name: the largest is the bound for the next. */
  highest: number;
  known: Map<string, number[]>;
}

interface Real {
  store: Store;
  place: StorePlace;
}

const TTL = 10_000;
const NAMES = ["a", "b"];
const live = (model: Model, name: string): Held | undefined => {
  const held = model.leases.get(name);
  return held && held.until > model.now ? held : undefined;
};

class Acquire implements fc.AsyncCommand<Model, Real> {
  readonly name: string;
  readonly holder: string;
  constructor(name: string, holder: string) {
    this.name = name;
    this.holder = holder;
  }
  check = () => true;
  async run(model: Model, { store }: Real): Promise<void> {
    const answer = await store.leases.acquire([this.name], this.holder, TTL);
    const current = live(model, this.name);
    expect(answer.held).toBe(current === undefined);
    if (!answer.held) return expect(answer.holder).toBe(current?.holder);
    expect(answer.fence).toBeGreaterThan(model.highest);
    model.highest = answer.fence;
    model.leases.set(this.name, { holder: this.holder, fence: answer.fence, until: model.now + TTL });
    model.known.set(this.name, [...(model.known.get(this.name) ?? []), answer.fence]);
  }
  toString = () => `acquire ${this.name} by ${this.holder}`;
}

/** Renew, release or guard with any fence that was ever given out: only the current, live one counts. */
class Use implements fc.AsyncCommand<Model, Real> {
  readonly verb: "renew" | "release" | "guard";
  readonly name: string;
  readonly pick: number;
  constructor(verb: "renew" | "release" | "guard", name: string, pick: number) {
    this.verb = verb;
    this.name = name;
    this.pick = pick;
  }
  check = (model: Readonly<Model>) => (model.known.get(this.name)?.length ?? 0) > 0;
  async run(model: Model, { store }: Real): Promise<void> {
    const fences = model.known.get(this.name) as number[];
    const fence = fences[this.pick % fences.length] as number;
    const current = live(model, this.name);
    const valid = current?.fence === fence;
    switch (this.verb) {
      case "renew":
        expect((await store.leases.renew([this.name], fence, TTL)) !== null).toBe(valid);
        if (valid) current.until = model.now + TTL;
        return;
      case "release":
        expect(await store.leases.release([this.name], fence)).toBe(valid);
        if (valid) model.leases.delete(this.name);
        return;
      default: {
        const guarded = await store
          .transact("guard", (tx) => store.leases.guard(tx, [this.name], fence))
          .then(
            () => true,
            () => false,
          );
        expect(guarded).toBe(valid);
      }
    }
  }
  toString = () => `${this.verb} ${this.name} #${this.pick}`;
}

const names = fc.constantFrom(...NAMES);
const commands = fc.commands(
  [
    fc.tuple(names, fc.constantFrom("x", "y", "z")).map(([name, holder]) => new Acquire(name, holder)),
    fc.tuple(fc.constantFrom("renew", "release", "guard"), names, fc.nat(20)).map(([verb, name, pick]) => new Use(verb, name, pick)),
    // Real time passes too while the test runs; the steps keep clear of the exact moment of expiry.
    fc.constantFrom(3_000, 12_000).map((ms) => new Elapse(ms)),
  ],
  { maxCommands: 40 },
);

describe.each(PLACES)("leases on %s behave like their model", (_name, makePlace) => {
  test("whatever is asked, in whatever order", async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const place = makePlace();
        try {
          const store = await place.open();
          await fc.asyncModelRun(
            () => ({ model: { now: 0, leases: new Map(), highest: 0, known: new Map() }, real: { store, place } }),
            sequence,
          );
        } finally {
          await place.remove();
        }
      }),
      { seed: SEED, numRuns: runsOf(makePlace, 60, 15) },
    );
  });
});

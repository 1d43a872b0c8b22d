import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ClaimMode, claimQuery, newClaim } from "../../src/contract/claims.ts";
import { isFailure } from "../../src/kernel/failure.ts";
import { Claims } from "../../src/records/claims/claims.ts";
import type { Store } from "../../src/store/store.ts";
import { guest, reader } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { Elapse } from "./elapse.ts";
import { runsOf, SEED } from "./seed.ts";

interface Held {
  readonly resource: string;
  readonly holder: string;
  readonly fence: number;
  mode: ClaimMode;
  until: number;
  readonly maxUntil: number;
}

interface Model {
  now: number;
  claims: Held[];
  /** Every fence ever given out, with its resource. */
  readonly known: { readonly resource: string; readonly fence: number }[];
}

interface Real {
  store: Store;
  place: StorePlace;
  claims: Claims;
}

const TTL = 10_000;
const MAX_HOLD = 40_000;
/** Every name there is. Two resources overlap when one of these belongs to both. */
const NAMES = ["r", "r/a", "r/b", "r/a/x", "r/a/y", "r/b/x", "s/a"];
const RESOURCES: Readonly<Record<string, readonly string[]>> = {
  "r/a": ["r/a"],
  "r/a/x": ["r/a/x"],
  "r/**": ["r", "r/a", "r/b", "r/a/x", "r/a/y", "r/b/x"],
  "r/a/**": ["r/a", "r/a/x", "r/a/y"],
  "r/*": ["r/a", "r/b"],
  "r/*/x": ["r/a/x", "r/b/x"],
  "r/**/x": ["r/a/x", "r/b/x"],
  "s/a": ["s/a"],
};
const overlap = (one: string, other: string): boolean =>
  NAMES.some((name) => RESOURCES[one]?.includes(name) && RESOURCES[other]?.includes(name));
const live = (model: Model): Held[] => model.claims.filter(({ until }) => until > model.now);

class Take implements fc.AsyncCommand<Model, Real> {
  readonly resource: string;
  readonly holder: string;
  readonly mode: ClaimMode;
  constructor(resource: string, holder: string, mode: ClaimMode) {
    this.resource = resource;
    this.holder = holder;
    this.mode = mode;
  }
  check = () => true;
  async run(model: Model, { claims }: Real): Promise<void> {
    const request = newClaim.parse({ resource: this.resource, ttl_ms: TTL, mode: this.mode });
    const answer = await claims.take(guest(this.holder), request).catch((error: unknown) => {
      if (!isFailure(error, "claim.held")) throw error;
      return error;
    });
    const inTheWay = live(model).filter(
      (held) =>
        held.holder !== this.holder && overlap(held.resource, this.resource) && (held.mode === "exclusive" || this.mode === "exclusive"),
    );
    if (isFailure(answer)) {
      expect(inTheWay.map(({ holder }) => holder)).toContain(answer.details.holder);
      return;
    }
    expect(inTheWay).toEqual([]);
    const own = live(model).find(({ resource, holder }) => resource === this.resource && holder === this.holder);
    expect(answer.fresh).toBe(own === undefined);
    if (own) {
      if (this.mode === "exclusive") own.mode = "exclusive";
      own.until = Math.max(own.until, Math.min(own.maxUntil, model.now + TTL));
      expect(answer.claim).toMatchObject({ fence: own.fence, mode: own.mode });
      return;
    }
    for (const { fence } of model.known) expect(answer.claim.fence).toBeGreaterThan(fence);
    const { fence } = answer.claim;
    model.claims.push({ ...this, fence, until: model.now + TTL, maxUntil: model.now + MAX_HOLD });
    model.known.push({ resource: this.resource, fence });
  }
  toString = () => `take ${this.resource} ${this.mode} by ${this.holder}`;
}

/** Renew, release or guard with any fence that was ever given out: only the holder's, live one counts. */
class Use implements fc.AsyncCommand<Model, Real> {
  readonly verb: "renew" | "release" | "guard";
  readonly holder: string;
  readonly pick: number;
  constructor(verb: "renew" | "release" | "guard", holder: string, pick: number) {
    this.verb = verb;
    this.holder = holder;
    this.pick = pick;
  }
  check = (model: Readonly<Model>) => model.known.length > 0;
  async run(model: Model, { store, claims }: Real): Promise<void> {
    const { resource, fence } = model.known[this.pick % model.known.length] as Model["known"][number];
    const held = live(model).find((claim) => claim.fence === fence);
    const own = held?.holder === this.holder;
    const succeeds = async (work: Promise<unknown>, code: "claim.lost"): Promise<boolean> =>
      work.then(
        () => true,
        (error: unknown) => {
          if (!isFailure(error, code)) throw error;
          return false;
        },
      );
    switch (this.verb) {
      case "renew":
        expect(await succeeds(claims.renew(guest(this.holder), { resource, fence, ttl_ms: TTL }), "claim.lost")).toBe(own);
        if (held && own) held.until = Math.min(held.maxUntil, model.now + TTL);
        return;
      case "release":
        expect(await succeeds(claims.release(guest(this.holder), { resource, fence }), "claim.lost")).toBe(own);
        if (own) model.claims = model.claims.filter((claim) => claim !== held);
        return;
      default: {
        const guarding = store.transact("guard", (tx) => claims.guard(tx, guest(this.holder), resource, fence), "locked");
        expect(await succeeds(guarding, "claim.lost")).toBe(own);
      }
    }
  }
  toString = () => `${this.verb} #${this.pick} by ${this.holder}`;
}

class Look implements fc.AsyncCommand<Model, Real> {
  readonly sweep: boolean;
  constructor(sweep: boolean) {
    this.sweep = sweep;
  }
  check = () => true;
  async run(model: Model, { claims }: Real): Promise<void> {
    if (this.sweep) await claims.sweep();
    const seen = (await claims.list(reader, claimQuery.parse({}))).claims.map(({ fence, mode }) => ({ fence, mode }));
    const expected = live(model).map(({ fence, mode }) => ({ fence, mode }));
    expect(seen.sort((a, b) => a.fence - b.fence)).toEqual(expected.sort((a, b) => a.fence - b.fence));
  }
  toString = () => (this.sweep ? "sweep and look" : "look");
}

const holders = fc.constantFrom("x", "y", "z");
const commands = fc.commands(
  [
    fc
      .tuple(fc.constantFrom(...Object.keys(RESOURCES)), holders, fc.constantFrom<ClaimMode>("exclusive", "exclusive", "shared"))
      .map(([resource, holder, mode]) => new Take(resource, holder, mode)),
    fc.tuple(fc.constantFrom("renew", "release", "guard"), holders, fc.nat(20)).map(([verb, holder, pick]) => new Use(verb, holder, pick)),
    fc.boolean().map((sweep) => new Look(sweep)),
    // Real time passes too while the test runs; the steps keep clear of the exact moment of expiry.
    fc.constantFrom(3_000, 12_000).map((ms) => new Elapse(ms)),
  ],
  { maxCommands: 60 },
);

describe.each(PLACES)("claims on %s behave like their model", (_name, makePlace) => {
  test("L1 L2 L5 L6 whatever is asked, in whatever order", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const place = makePlace();
        try {
          const store = await place.open();
          const real = { store, place, claims: new Claims(store, "node-1", { maxHoldMs: MAX_HOLD }) };
          await fc.asyncModelRun(() => ({ model: { now: 0, claims: [], known: [] }, real }), sequence);
        } finally {
          await place.remove();
        }
      }),
      { seed: SEED, numRuns: runsOf(makePlace, 60, 15) },
    );
  });
});

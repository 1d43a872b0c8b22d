import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { isFailure } from "../../src/kernel/failure.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { agent, poolsOn } from "../contract/pool-callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { Elapse } from "./elapse.ts";
import { runsOf, SEED } from "./seed.ts";

const TTL = 10_000;
const KEYS = ["free", "strict", "list"] as const;
type Key = (typeof KEYS)[number];
const DEFINITION = {
  readers: ["*"],
  writers: ["*"],
  keys: { free: { policy: "last_write" }, list: { policy: "append", ttl: TTL } },
};

interface Version {
  readonly key: Key;
  readonly number: number;
  /** undefined: a tombstone. */
  readonly value: unknown;
  readonly author: string;
  readonly expires: number;
  readonly external: boolean;
  readonly parents: ReadonlySet<Version>;
  retracted: boolean;
}

class Model {
  now = 0;
  readonly versions: Record<Key, Version[]> = { free: [], strict: [], list: [] };
  readonly reads = new Map<string, Set<Version>>();

  stored(key: Key): Version | undefined {
    const newest = this.versions[key].findLast((version) => !version.retracted);
    return newest?.value === undefined ? undefined : newest;
  }

  current(key: Key): Version | undefined {
    const stored = this.stored(key);
    return stored && stored.expires > this.now ? stored : undefined;
  }

  readsOf(name: string): Set<Version> {
    const known = this.reads.get(name) ?? new Set();
    this.reads.set(name, known);
    return known;
  }

  add(key: Key, value: unknown, author: string, external: boolean, base?: Version, ttl = Number.POSITIVE_INFINITY): Version {
    const parents = new Set(author === "guildhall" ? [] : this.readsOf(author));
    if (base) parents.add(base);
    const tainted = external || [...this.readsOf(author)].some((read) => read.external) || base?.external === true;
    const expires = this.now + ttl;
    const version = {
      key,
      number: this.versions[key].length + 1,
      value,
      author,
      expires,
      external: tainted,
      parents,
      retracted: false,
    };
    this.versions[key].push(version);
    return version;
  }

  all(): Version[] {
    return KEYS.flatMap((key) => this.versions[key]);
  }

  descendants(of: Version): Set<Version> {
    const found = new Set<Version>([of]);
    for (let grew = true; grew; ) {
      grew = false;
      for (const version of this.all()) {
        if (version.value === undefined || found.has(version)) continue;
        if ([...version.parents].some((parent) => found.has(parent))) grew = found.add(version) !== undefined;
      }
    }
    found.delete(of);
    return found;
  }
}

interface Real {
  store: Store;
  place: StorePlace;
  pools: Pools;
}

const caller = (name: string) => agent(name, `run of ${name}`);
const nameOf = (version: { key: string; version?: number; number?: number }) => `${version.key}@${version.version ?? version.number}`;

type Condition = "none" | "new" | "right" | "stale";

class Write implements fc.AsyncCommand<Model, Real> {
  readonly by: string;
  readonly key: Key;
  readonly value: number | undefined;
  readonly condition: Condition;
  readonly external: boolean;
  constructor(by: string, key: Key, value: number | undefined, condition: Condition, external: boolean) {
    this.by = by;
    this.key = key;
    this.value = value;
    this.condition = condition;
    this.external = external;
  }
  check = () => true;
  async run(model: Model, { pools }: Real): Promise<void> {
    const current = model.current(this.key);
    const wanted = { none: undefined, new: null, right: current?.number ?? null, stale: (current?.number ?? 0) + 7 }[this.condition];
    const write = this.value === undefined ? { key: this.key, remove: true as const } : { key: this.key, value: this.value };
    const answer = await pools
      .write(caller(this.by), "house", [wanted === undefined ? write : { ...write, ifVersion: wanted }], { external: this.external })
      .catch((error: unknown) => error);
    const fits =
      wanted === undefined ? this.key !== "strict" || !current || this.value === undefined : wanted === (current?.number ?? null);
    if (!fits) {
      expect(answer).toMatchObject({ code: "pool.conflict" });
      if (current) model.readsOf(this.by).add(current);
    } else if (this.value === undefined && !current) {
      expect(isFailure(answer, "request.not_found")).toBe(true);
    } else if (this.value === undefined) {
      expect(answer).toMatchObject([{ version: model.add(this.key, undefined, this.by, this.external).number, deleted: true }]);
    } else {
      const base = this.key === "list" ? current : undefined;
      const value = this.key === "list" ? [...((base?.value as unknown[]) ?? []), this.value] : this.value;
      const made = model.add(this.key, value, this.by, this.external, base, this.key === "list" ? TTL : undefined);
      expect(answer).toMatchObject([
        { version: made.number, value, label: made.external ? "external" : "trusted", author: { agent: this.by } },
      ]);
      if (base) model.readsOf(this.by).add(made);
    }
  }
  toString = () =>
    `${this.by} ${this.value === undefined ? "removes" : `writes ${this.value} to`} ${this.key} (${this.condition}${this.external ? ", external" : ""})`;
}

class Read implements fc.AsyncCommand<Model, Real> {
  readonly by: string;
  readonly key: Key;
  constructor(by: string, key: Key) {
    this.by = by;
    this.key = key;
  }
  check = () => true;
  async run(model: Model, { pools }: Real): Promise<void> {
    const current = model.current(this.key);
    const entry = await pools.read(caller(this.by), "house", this.key);
    expect(entry && [entry.version, entry.value]).toEqual(current && [current.number, current.value]);
    if (current) model.readsOf(this.by).add(current);
  }
  toString = () => `${this.by} reads ${this.key}`;
}

class Retract implements fc.AsyncCommand<Model, Real> {
  readonly key: Key;
  readonly pick: number;
  constructor(key: Key, pick: number) {
    this.key = key;
    this.pick = pick;
  }
  check = (model: Readonly<Model>) => model.versions[this.key].some((version) => version.value !== undefined);
  async run(model: Model, { store, pools }: Real): Promise<void> {
    const candidates = model.versions[this.key].filter((version) => version.value !== undefined);
    const target = candidates[this.pick % candidates.length] as Version;
    const gone = [target, ...model.descendants(target)].filter((version) => !version.retracted);
    const { retracted } = await store.transact(
      "retract",
      (tx) => pools.retractIn(tx, OPERATOR, { pool: "house", key: this.key, version: target.number }, "wrong"),
      "locked",
    );
    for (const version of gone) version.retracted = true;
    expect(retracted.map(nameOf).sort()).toEqual(gone.map(nameOf).sort());
  }
  toString = () => `retract ${this.key} #${this.pick}`;
}

class Sweep implements fc.AsyncCommand<Model, Real> {
  check = () => true;
  async run(model: Model, { pools }: Real): Promise<void> {
    for (const key of KEYS) if (model.stored(key) && !model.current(key)) model.add(key, undefined, "guildhall", false);
    await pools.sweep();
  }
  toString = () => "sweep";
}

/** Everything that can be asked, against the model. */
class Inspect implements fc.AsyncCommand<Model, Real> {
  check = () => true;
  async run(model: Model, { pools, store }: Real): Promise<void> {
    const restarted = new Pools(store);
    const { entries } = await restarted.snapshot(OPERATOR, "house");
    const live = KEYS.flatMap((key) => model.current(key) ?? []);
    expect(entries.map((entry) => [entry.key, entry.version, entry.value]).sort()).toEqual(
      live.map((version) => [version.key, version.number, version.value]).sort(),
    );
    const stored = KEYS.flatMap((key) => model.stored(key) ?? []);
    const bytes = stored.reduce((sum, version) => sum + JSON.stringify(version.value).length, 0);
    const byAgent: Record<string, { bytes: number; entries: number }> = {};
    for (const { author, value } of stored) {
      const { bytes: before, entries: count } = byAgent[author] ?? { bytes: 0, entries: 0 };
      byAgent[author] = { bytes: before + JSON.stringify(value).length, entries: count + 1 };
    }
    expect(await pools.details(OPERATOR, "house")).toMatchObject({ usage: { bytes, entries: stored.length }, usageByAgent: byAgent });
    for (const key of KEYS) {
      const history = model.versions[key].length === 0 ? [] : (await pools.history(OPERATOR, "house", key, { limit: 1_000 })).entries;
      expect(history.map((entry) => [entry.version, entry.deleted, entry.retracted, entry.label])).toEqual(
        model.versions[key].map((version) => [
          version.number,
          version.value === undefined,
          version.retracted,
          version.external ? "external" : "trusted",
        ]),
      );
      const newest = model.versions[key].findLast((version) => version.value !== undefined);
      if (!newest) continue;
      const blame = await pools.blame(OPERATOR, "house", key, newest.number);
      expect(blame.derivedFrom.map(nameOf).sort()).toEqual([...newest.parents].map(nameOf).sort());
      expect(blame.descendants.map(nameOf).sort()).toEqual([...model.descendants(newest)].map(nameOf).sort());
    }
  }
  toString = () => "inspect";
}

const keys = fc.constantFrom(...KEYS);
const people = fc.constantFrom("x", "y", "z");
const commands = fc.commands(
  [
    fc
      .tuple(
        people,
        keys,
        fc.option(fc.nat(9), { nil: undefined, freq: 5 }),
        fc.constantFrom<Condition>("none", "none", "new", "right", "right", "stale"),
        fc.nat(9),
      )
      .map(([by, key, value, condition, outside]) => new Write(by, key, value, condition, outside < 2)),
    fc.tuple(people, keys).map(([by, key]) => new Read(by, key)),
    fc.tuple(keys, fc.nat(20)).map(([key, pick]) => new Retract(key, pick)),
    fc.constantFrom(3_000, 12_000).map((ms) => new Elapse(ms)),
    fc.constant(new Sweep()),
    fc.constant(new Inspect()),
  ],
  { maxCommands: 40, size: "max" },
);

describe.each(PLACES)("pools on %s behave like their model", (_name, makePlace) => {
  test("V2 P5 whatever is written, read, removed and retracted, in whatever order", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const place = makePlace();
        try {
          const store = await place.open();
          const pools = await poolsOn(store, { house: DEFINITION });
          const [model, real] = [new Model(), { store, place, pools }];
          await fc.asyncModelRun(() => ({ model, real }), sequence);
          await new Inspect().run(model, real);
        } finally {
          await place.remove();
        }
      }),
      { seed: SEED, numRuns: runsOf(makePlace, 60, 12) },
    );
  });
});

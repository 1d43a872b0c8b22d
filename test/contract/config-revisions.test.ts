import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigRevisions, type NewRevision } from "../../src/records/agents/config-revisions.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const revision = (hash: string, more: Partial<NewRevision> = {}): NewRevision => ({
  hash,
  state: "applied",
  node: "n",
  text: hash,
  changes: [`to ${hash}`],
  problems: [],
  ...more,
});

describe.each(PLACES)("revisions of the config on %s", (_name, placeOf) => {
  let place: StorePlace;
  let store: Store;
  beforeEach(async () => {
    place = placeOf();
    store = await place.open();
  });
  afterEach(() => place.remove());
  const record = (one: NewRevision, always = false, node: Store = store) =>
    node.transact("record", (tx) => new ConfigRevisions(node).recordIn(tx, one, always), "locked");

  test("are numbered, told to the ledger, and listed with the newest first", async () => {
    expect(await record(revision("one"))).toEqual({ number: 1, fresh: true });
    expect(await record(revision("two"))).toEqual({ number: 2, fresh: true });
    expect(await new ConfigRevisions(store).list(10)).toMatchObject([
      { number: 2, hash: "two", state: "applied", changes: ["to two"], quarantined: [] },
      { number: 1, hash: "one" },
    ]);
    const told = await store.read.all<{ type: string }>`select type from ledger order by seq`;
    expect(told.map(({ type }) => type)).toEqual(["config.applied", "config.applied"]);
  });

  test("the same text again is the same revision, also after a restart and after another was rejected", async () => {
    await record(revision("one"));
    await record(revision("bad", { state: "rejected" }));
    const next = await place.open();
    expect(await record(revision("one"), false, next)).toEqual({ number: 1, fresh: false });
    expect(await record(revision("two"), false, next)).toEqual({ number: 3, fresh: true });
    expect(await record(revision("one"), false, next)).toEqual({ number: 4, fresh: true });
  });

  test("a node knows the newest text by whatever number, and no other", async () => {
    await record(revision("one"));
    await record(revision("two"));
    const revisions = new ConfigRevisions(store);
    expect([await revisions.isNewest("one"), await revisions.isNewest("two")]).toEqual([false, true]);
    await record(revision("bad", { state: "rejected" }));
    expect(await revisions.isNewest("two")).toBe(true);
    await record(revision("one"));
    expect([await revisions.isNewest("one"), await revisions.isNewest("two")]).toEqual([true, false]);
  });

  test("nodes that start together with one text have one revision", async () => {
    const nodes = await Promise.all(Array.from({ length: 4 }, () => place.open()));
    for (let round = 1; round <= 40; round++) {
      const recorded = await Promise.all(nodes.map((node) => record(revision(`text ${round}`), false, node)));
      expect(recorded.map(({ number }) => number)).toEqual([round, round, round, round]);
      expect(recorded.filter(({ fresh }) => fresh)).toHaveLength(1);
    }
  });

  test("say which agents were quarantined", async () => {
    const problem = {
      severity: "error",
      code: "c",
      file: "f",
      line: 1,
      column: 1,
      path: "agents.coder.tools",
      message: "m",
      fix: "x",
    } as const;
    await record(revision("one", { problems: [problem, { ...problem, path: "agents.coder.model" }] }));
    expect((await new ConfigRevisions(store).list(1))[0]).toMatchObject({ quarantined: ["coder"], problems: [problem, {}] });
  });
});

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { appliedAfter, ConfigRevisions, type NewRevision, type RecordRules } from "../../src/records/agents/config-revisions.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const revision = (hash: string, more: Partial<NewRevision> = {}): NewRevision => ({
  hash,
  state: "applied",
  node: "n",
  actor: "n1",
  text: hash,
  isWhole: true,
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
  const record = (one: NewRevision, rules: RecordRules = {}, node: Store = store) =>
    node.transact("record", (tx) => new ConfigRevisions(node).recordIn(tx, one, rules), "locked");

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
    expect(await record(revision("one"), {}, next)).toEqual({ number: 1, fresh: false });
    expect(await record(revision("two"), {}, next)).toEqual({ number: 3, fresh: true });
    expect(await record(revision("one"), {}, next)).toEqual({ number: 4, fresh: true });
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
      const recorded = await Promise.all(nodes.map((node) => record(revision(`text ${round}`), {}, node)));
      expect(recorded.map(({ number }) => number)).toEqual([round, round, round, round]);
      expect(recorded.filter(({ fresh }) => fresh)).toHaveLength(1);
    }
  });

  test("one that was decided on before another text was applied is refused, and leaves nothing behind", async () => {
    await record(revision("one"), { after: null });
    await record(revision("two"), { after: 1 });
    await expect(record(revision("three"), { after: 1 })).rejects.toMatchObject({ code: "config.changed" });
    await expect(record(revision("three"), { after: null })).rejects.toMatchObject({ code: "config.changed" });
    // The same text by another number is no other text.
    expect(await record(revision("two"), { after: 1, always: true })).toEqual({ number: 3, fresh: true });
    expect(await record(revision("two"), { after: 1 })).toEqual({ number: 3, fresh: false });
    const told = await store.read.all<{ type: string }>`select type from ledger order by seq`;
    expect(told).toHaveLength(3);
  });

  test("of nodes that decide on the same one at once, one is first and the others are told", async () => {
    await record(revision("one"));
    const nodes = await Promise.all(Array.from({ length: 4 }, () => place.open()));
    for (let round = 1; round <= 10; round++) {
      const outcomes = await Promise.allSettled(
        nodes.map((node, index) => record(revision(`${round} of ${index}`), { after: round }, node)),
      );
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    }
  });

  test("a text can be read by others where nothing was taken out of it, whoever has stored it so", async () => {
    const revisions = new ConfigRevisions(store);
    expect(await revisions.newest()).toBeUndefined();
    await record(revision("one", { text: "[secret]", isWhole: false, node: "a" }));
    const newest = { number: 1, hash: "one", node: "a" };
    expect(await revisions.newest()).toEqual(newest);
    expect(await revisions.textOf(newest)).toEqual({ text: null, quarantined: [] });
    await record(revision("one", { text: "rejected", state: "rejected" }), { always: true });
    expect(await revisions.textOf(newest)).toEqual({ text: null, quarantined: [] });
    await record(revision("one", { text: "whole", node: "b" }), { always: true });
    expect(await revisions.textOf(newest)).toEqual({ text: "whole", quarantined: [] });
    expect([await revisions.numberOf("one"), await revisions.numberOf("two")]).toEqual([3, undefined]);
    await record(revision("nul", { text: "a\0b" }));
    expect(await revisions.textOf({ number: 4, hash: "nul" })).toMatchObject({ text: null });
    expect((await revisions.list(10)).map(({ shared }) => shared)).toEqual([false, true, true, false]);
  });

  test("a revision of which nobody knows whether it is whole becomes so with whoever has the same text", async () => {
    const revisions = new ConfigRevisions(store);
    await record(revision("one", { text: "[secret]", isWhole: false }));
    await record(revision("one", { text: "[secret]", isWhole: false }));
    expect(await revisions.textOf({ number: 1, hash: "one" })).toMatchObject({ text: null });
    expect(await record(revision("one", { text: "whole" }))).toEqual({ number: 1, fresh: false });
    expect(await revisions.textOf({ number: 1, hash: "one" })).toMatchObject({ text: "whole" });
  });

  test("a node asks whether there is a newer one, and is woken when there is", async () => {
    const other = await place.open();
    const isNewer = async (number: number): Promise<boolean> => (await other.pulse.ask([appliedAfter(number)]))[0] === true;
    expect(await isNewer(0)).toBe(false);
    const seen = store.wake.version("config");
    await record(revision("one"));
    expect(store.wake.version("config")).toBe(seen + 1);
    expect([await isNewer(0), await isNewer(1)]).toEqual([true, false]);
    await record(revision("bad", { state: "rejected" }));
    expect(await isNewer(1)).toBe(false);
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

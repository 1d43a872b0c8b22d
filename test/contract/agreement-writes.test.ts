import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { castVote } from "../../src/acts/cast-vote.ts";
import { decideDue } from "../../src/acts/decide-due.ts";
import type { AgreementParts } from "../../src/acts/decide-proposal.ts";
import { openProposal } from "../../src/acts/open-proposal.ts";
import type { PoolDefinition } from "../../src/contract/pools.ts";
import { newProposal, type Proposal, type ProposalDraft, type VoteKind } from "../../src/contract/proposals.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Agreements } from "../../src/records/agreements/agreements.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const newId = idSource(systemClock, systemRandom);
const guest = (name: string): Caller => ({ kind: "guest", name, roles: [], run: null, step: null, call: null });
const ALICE = guest("alice");
const BOB = guest("bob");
const partsOn = (store: Store): AgreementParts => ({ store, agreements: new Agreements(store), pools: new Pools(store) });

describe.each(PLACES)("agreements with writes on %s", (_name, makePlace) => {
  let place: StorePlace;
  let parts: AgreementParts;

  beforeEach(async () => {
    place = makePlace();
    parts = partsOn(await place.open());
    for (const name of ["plans", "notes"]) await makePool(name, { readers: ["bob"], writers: ["alice", "carol"] });
  });
  afterEach(() => place.remove());

  const makePool = (name: string, definition: PoolDefinition): Promise<void> =>
    parts.store.transact("make pool", (tx) => parts.pools.createIn(tx, "operator", name, definition), "locked");
  const open = (draft: Partial<ProposalDraft> = {}, proposer = ALICE): Promise<Proposal> =>
    openProposal(
      parts,
      newId,
      proposer,
      newProposal.parse({ subject: "s", electorate: ["alice", "bob"], rule: "all", deadline_ms: 60_000, writes: TWO, ...draft }),
    );
  const vote = (proposal: Proposal, voter: Caller, kind: VoteKind = "yes", node = parts): Promise<Proposal> =>
    castVote(node, voter, proposal.id, { vote: kind, hash: proposal.hash });
  const agree = async (proposal: Proposal): Promise<Proposal> => {
    await vote(proposal, ALICE);
    return vote(proposal, BOB);
  };
  const valueAt = async (pool: string, key: string): Promise<unknown> => (await parts.pools.read(OPERATOR, pool, key))?.value;
  const both = async (): Promise<unknown[]> => [await valueAt("plans", "release"), await valueAt("notes", "day")];
  const put = (pool: string, key: string, value: unknown, ifVersion?: number | null, by = guest("carol")) =>
    parts.pools.write(by, pool, [{ key, value, ...(ifVersion === undefined ? {} : { ifVersion }) }]);

  const TWO = [
    { pool: "plans", key: "release", value: { version: "2.0" } },
    { pool: "notes", key: "day", value: "Monday" },
  ];

  test("A5 a commit applies every attached write, as the proposer's, in the same transaction", async () => {
    const proposal = await open();
    expect(proposal.pins).toEqual([
      { pool: "notes", key: "day", version: null },
      { pool: "plans", key: "release", version: null },
    ]);
    await vote(proposal, ALICE);
    expect(await both()).toEqual([undefined, undefined]);
    expect((await vote(proposal, BOB)).state).toBe("committed");
    expect(await both()).toEqual([{ version: "2.0" }, "Monday"]);
    expect((await parts.pools.read(OPERATOR, "plans", "release"))?.author).toMatchObject({ agent: "alice" });
    const events = (await parts.store.ledger.read(0, 1_000)).filter(({ type }) => /written|committed|voted/.test(type));
    expect(events.map(({ type }) => type)).toEqual([
      "proposal.voted",
      "proposal.voted",
      "pool.written",
      "pool.written",
      "proposal.committed",
    ]);
    const last = events[1]?.seq;
    expect(events.slice(2).map(({ causedBy }) => causedBy)).toEqual([last, last, last]);
  });

  test("A5 an aborted proposal writes nothing, whatever aborts it", async () => {
    const refused = await open();
    expect((await vote(refused, BOB, "veto")).state).toBe("aborted");
    const late = await open();
    await vote(late, ALICE);
    await place.elapse(60_000);
    expect(await decideDue(parts, 10)).toBe(1);
    expect(await both()).toEqual([undefined, undefined]);
  });

  test.each<[string, (proposal: Proposal) => Promise<unknown>, RegExp]>([
    [
      "a key it writes was changed",
      () => put("plans", "release", "other", 1),
      /plans\/release was pinned at version 1 and is at version 2/,
    ],
    ["a new key it writes was taken", () => put("notes", "day", "Tuesday"), /notes\/day was pinned absent and is at version 1/],
    ["a key it writes was deleted", () => parts.pools.write(OPERATOR, "plans", [{ key: "release", remove: true }]), /is absent/],
    ["a key it only pins was changed", () => put("plans", "budget", 2, 1), /plans\/budget was pinned at version 1/],
    [
      "a version it pins was retracted",
      () =>
        parts.store.transact("retract", (tx) => parts.pools.retractIn(tx, OPERATOR, { pool: "plans", key: "budget", version: 1 }, "wrong")),
      /plans\/budget was pinned at version 1 and is absent/,
    ],
  ])("A5 aborted when %s, and nothing is written", async (_what, move, because) => {
    await put("plans", "release", "1.0");
    await put("plans", "budget", 1);
    const proposal = await open({ pins: [{ pool: "plans", key: "budget", version: 1 }] });
    expect(proposal.pins).toContainEqual({ pool: "plans", key: "release", version: 1 });
    await move(proposal);
    const before = await both();
    const decided = await agree(proposal);
    expect(decided).toMatchObject({ state: "aborted", because: expect.stringMatching(because), votes: [{}, {}] });
    expect(await both()).toEqual(before);
    expect((await parts.agreements.read(OPERATOR, proposal.id)).state).toBe("aborted");
  });

  test("A5 a pin that holds does not stand in the way: also of an entry that expires later", async () => {
    await put("plans", "release", "1.0");
    const proposal = await open({ pins: [{ pool: "notes", key: "never", version: null }] });
    await put("plans", "elsewhere", 1);
    expect((await agree(proposal)).state).toBe("committed");
    expect((await parts.pools.read(OPERATOR, "plans", "release"))?.version).toBe(2);
  });

  test("A5 the proposer's right to write is checked when it is decided: the second write is refused, so the first is not made", async () => {
    const proposal = await open();
    await place.tamper(`update pools set definition = '{"readers":["alice"]}', revision = revision + 1000000 where name = 'plans'`);
    const decided = await agree(proposal);
    expect(decided).toMatchObject({ state: "aborted", because: expect.stringContaining('alice may not write "release"'), votes: [{}, {}] });
    expect(await both()).toEqual([undefined, undefined]);
    const written = (await parts.store.ledger.read(0, 1_000)).filter(({ type }) => type === "pool.written");
    expect(written).toEqual([]);
  });

  test("A5 a value that the pool refuses aborts all of it", async () => {
    await makePool("strict", { writers: ["alice"], keys: { count: { schema: { type: "number" } } } });
    await makePool("tiny", { writers: ["alice"], quota: { max_entries: 1 } });
    const wrong = await open({ writes: [...TWO, { pool: "strict", key: "count", value: "many" }] });
    expect(await agree(wrong)).toMatchObject({ state: "aborted", because: expect.stringContaining("does not fit its schema") });
    const full = await open({
      writes: [...TWO, { pool: "tiny", key: "a", value: 1 }, { pool: "tiny", key: "b", value: 1 }],
    });
    expect(await agree(full)).toMatchObject({ state: "aborted", because: expect.stringContaining("is full") });
    expect(await both()).toEqual([undefined, undefined]);
  });

  test("what cannot be written, or has moved already, is told when it is proposed", async () => {
    await put("plans", "release", "1.0");
    await expect(open({}, BOB)).rejects.toMatchObject({ code: "request.forbidden" });
    const nowhere = (pool: string) => open({ writes: [{ pool, key: "x", value: 1 }] }, guest("mallory"));
    await expect(nowhere("plans")).rejects.toMatchObject({ code: "request.not_found", message: 'there is no pool "plans"' });
    await expect(nowhere("nowhere")).rejects.toMatchObject({ code: "request.not_found", message: 'there is no pool "nowhere"' });
    const pinned = open({ writes: [], pins: [{ pool: "plans", key: "release", version: 7 }] });
    await expect(pinned).rejects.toMatchObject({ code: "pool.conflict" });
    const stale = open({ writes: [{ pool: "plans", key: "release", value: 1, if_version: null }] });
    await expect(stale).rejects.toMatchObject({ code: "pool.conflict" });
    expect((await parts.agreements.list(OPERATOR, { limit: 10 })).proposals).toEqual([]);
  });

  test("V6 a step proposes nothing beyond what it has declared", async () => {
    const draft = newProposal.parse({ subject: "s", electorate: ["bob"], rule: "all", deadline_ms: 60_000, writes: TWO });
    const propose = (writes: string[]) => openProposal(parts, newId, ALICE, draft, { grant: { reads: [], writes } });
    await expect(propose(["release"])).rejects.toMatchObject({ code: "request.forbidden", details: { key: "day" } });
    expect((await propose(["release", "day"])).state).toBe("open");
  });

  test("an attached write may remove an entry", async () => {
    await put("plans", "release", "1.0");
    const proposal = await open({ writes: [{ pool: "plans", key: "release", remove: true }] });
    expect((await agree(proposal)).state).toBe("committed");
    expect(await valueAt("plans", "release")).toBeUndefined();
  });

  test("P5 what was proposed upon external input stays external, however long the vote takes", async () => {
    await parts.pools.write(OPERATOR, "plans", [{ key: "inbox", value: "from a stranger" }], { external: true });
    await parts.pools.read(ALICE, "plans", "inbox");
    await parts.pools.read(BOB, "plans", "inbox");
    const proposal = await open({ deadline_ms: 30 * 86_400_000 });
    expect(proposal.label).toBe("external");
    await place.elapse(86_400_000);
    expect((await agree(proposal)).state).toBe("committed");
    expect((await parts.pools.read(OPERATOR, "plans", "release"))?.label).toBe("external");
  });

  test("A5 D2 whatever dies while it is decided: votes, writes, events and outcome are all there or none", async () => {
    const points: CrashPoint[] = ["store.batch.operation-done", "store.commit.before"];
    for (const point of points) {
      const proposal = await open({
        writes: [
          { pool: "plans", key: point, value: 1 },
          { pool: "notes", key: point, value: 2 },
        ],
      });
      await vote(proposal, ALICE);
      let armed = false;
      const dying = partsOn(
        await place.open({
          reached: (reached) => {
            if (armed && reached === point) throw new Error("killed here");
          },
        }),
      );
      armed = true;
      await expect(vote(proposal, BOB, "yes", dying)).rejects.toThrow();
      armed = false;
      const { state, votes } = await parts.agreements.read(OPERATOR, proposal.id);
      expect({ state, votes: votes.length }).toEqual({ state: "open", votes: 1 });
      expect([await valueAt("plans", point), await valueAt("notes", point)]).toEqual([undefined, undefined]);
      expect((await vote(proposal, BOB)).state).toBe("committed");
      expect([await valueAt("plans", point), await valueAt("notes", point)]).toEqual([1, 2]);
    }
  });

  test("A5 the process dies between the refused write and the abort: still open, and the next to come decides", async () => {
    const proposal = await open();
    await vote(proposal, ALICE);
    await place.tamper(`update pools set definition = '{"readers":["alice"]}', revision = revision + 1000000 where name = 'plans'`);
    let begun = 0;
    const transact: Store["transact"] = async (...call) => {
      if (++begun > 1) throw new Error("killed here");
      return parts.store.transact(...call);
    };
    const dying = { ...parts, store: { transact } as unknown as Store };
    await expect(vote(proposal, BOB, "yes", dying)).rejects.toThrow("killed here");
    expect(await parts.agreements.read(OPERATOR, proposal.id)).toMatchObject({ state: "open", votes: [{ voter: "alice" }] });
    expect(await vote(proposal, BOB)).toMatchObject({ state: "aborted", votes: [{}, {}] });
    expect(await both()).toEqual([undefined, undefined]);
  });

  test("A5 V4 a writer races with the deciding vote on another node: the proposal's writes are all there or none, and no write is lost", async () => {
    const other = partsOn(await place.open());
    for (let round = 0; round < 12; round++) {
      const keys = { release: `release-${round}`, day: `day-${round}` };
      await put("plans", keys.release, "before");
      const proposal = await open({
        writes: [
          { pool: "plans", key: keys.release, value: "agreed" },
          { pool: "notes", key: keys.day, value: "agreed" },
        ],
      });
      await vote(proposal, ALICE);
      const decide = () => vote(proposal, BOB, "yes", other);
      const write = () =>
        put("plans", keys.release, "raced", 1).then(
          () => true,
          (error) => {
            expect(error).toMatchObject({ code: "pool.conflict" });
            return false;
          },
        );
      const first = round % 2 === 0 ? decide() : write();
      const [decided, raced] = (await Promise.all(round % 2 === 0 ? [first, write()] : [decide(), first])) as [Proposal, boolean];
      expect(raced).toBe(decided.state === "aborted");
      expect([await valueAt("plans", keys.release), await valueAt("notes", keys.day)]).toEqual(
        raced ? ["raced", undefined] : ["agreed", "agreed"],
      );
    }
  });

  test("A5 two proposals for the same entries are decided at once on two nodes: one is committed, the other aborted, without a deadlock", async () => {
    const other = partsOn(await place.open());
    for (let round = 0; round < 8; round++) {
      const writes = (value: string, order: readonly string[]) => order.map((pool) => ({ pool, key: `k${round}`, value }));
      const first = await open({ writes: writes("first", ["plans", "notes"]) });
      const second = await open({ writes: writes("second", ["notes", "plans"]) });
      await vote(first, ALICE);
      await vote(second, ALICE);
      const decided = await Promise.all([vote(first, BOB), vote(second, BOB, "yes", other)]);
      expect(decided.map(({ state }) => state).sort()).toEqual(["aborted", "committed"]);
      const winner = decided[0].state === "committed" ? "first" : "second";
      expect([await valueAt("plans", `k${round}`), await valueAt("notes", `k${round}`)]).toEqual([winner, winner]);
    }
  });

  test("A5 V4 two proposals, each pinning what the other writes, are decided at once on two nodes: never both are committed", async () => {
    const other = partsOn(await place.open());
    for (let round = 0; round < 12; round++) {
      const [a, b] = [`a${round}`, `b${round}`];
      const crossed = (pinned: string, written: string): Promise<Proposal> =>
        open({ pins: [{ pool: "plans", key: pinned, version: null }], writes: [{ pool: "plans", key: written, value: 1 }] });
      const proposals = [await crossed(a, b), await crossed(b, a)] as const;
      for (const proposal of proposals) await vote(proposal, ALICE);
      const decided = await Promise.all([vote(proposals[0], BOB), vote(proposals[1], BOB, "yes", other)]);
      expect(decided.map(({ state }) => state).sort()).toEqual(["aborted", "committed"]);
    }
  });

  test("votes, pins and writes are seen by the electorate; events show no values", async () => {
    const proposal = await agree(await open());
    expect((await parts.agreements.read(BOB, proposal.id)).writes).toEqual(TWO);
    const told = JSON.stringify(await parts.store.ledger.read(0, 1_000));
    expect(told).not.toContain("Monday");
    expect(told).not.toContain("2.0");
  });
});

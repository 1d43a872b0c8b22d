import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { castVote } from "../../src/acts/cast-vote.ts";
import { decideDue } from "../../src/acts/decide-due.ts";
import type { AgreementParts } from "../../src/acts/decide-proposal.ts";
import { openProposal } from "../../src/acts/open-proposal.ts";
import { newProposal, type Proposal, type ProposalDraft, type Rule, type VoteKind } from "../../src/contract/proposals.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { canonicalJson, sha256 } from "../../src/kernel/canonical-json.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Agreements } from "../../src/records/agreements/agreements.ts";
import { hashOf } from "../../src/records/agreements/proposal-rows.ts";
import { neededYes } from "../../src/records/agreements/verdict.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { SEED } from "../models/seed.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const newId = idSource(systemClock, systemRandom);
const guest = (name: string): Caller => ({ kind: "guest", name, roles: [], run: null, step: null, call: null });
const READER: Caller = { ...guest("auditor"), kind: "reader" };
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `elector-${index}`);
const partsOn = (store: Store): AgreementParts => ({ store, agreements: new Agreements(store), pools: new Pools(store) });

describe.each(PLACES)("agreements on %s", (_name, makePlace) => {
  let place: StorePlace;
  let parts: AgreementParts;

  beforeEach(async () => {
    place = makePlace();
    parts = partsOn(await place.open());
  });
  afterEach(() => place.remove());

  const open = (draft: Partial<ProposalDraft> = {}, proposer = guest("alice")): Promise<Proposal> =>
    openProposal(
      parts,
      newId,
      proposer,
      newProposal.parse({ subject: "ship it", electorate: ["alice", "bob", "carol"], rule: "all", deadline_ms: 60_000, ...draft }),
    );
  const vote = (proposal: Proposal, voter: string, kind: VoteKind = "yes", node = parts, hash = proposal.hash): Promise<Proposal> =>
    castVote(node, guest(voter), proposal.id, { vote: kind, hash });
  const read = (proposal: Proposal, caller = OPERATOR, node = parts): Promise<Proposal> => node.agreements.read(caller, proposal.id);
  const events = async (proposal: Proposal): Promise<string[]> =>
    (await parts.store.ledger.read(0, 10_000, ["proposal", proposal.id])).map((event) => event.type);

  test("a proposal is committed by the vote that meets its rule, and says how", async () => {
    const proposal = await open();
    expect(proposal).toMatchObject({ state: "open", because: null, votes: [], proposer: "alice", decidedAt: null });
    expect(proposal.deadline - proposal.createdAt).toBe(60_000);
    expect((await vote(proposal, "alice")).state).toBe("open");
    await vote(proposal, "bob");
    const decided = await vote(proposal, "carol");
    expect(decided).toMatchObject({ state: "committed", because: "3 yes and 0 no of 3, 3 yes needed", decidedAt: expect.any(Number) });
    expect(decided.votes.map(({ voter, vote }) => `${voter} ${vote}`)).toEqual(["alice yes", "bob yes", "carol yes"]);
    expect(await read(proposal)).toEqual(decided);
    expect(await events(proposal)).toEqual(["proposal.opened", ...Array(3).fill("proposal.voted"), "proposal.committed"]);
  });

  test.each<[Rule, string[], Proposal["state"]]>([
    ["majority", ["alice yes", "bob yes"], "committed"],
    ["majority", ["alice yes", "bob no"], "open"],
    ["majority", ["alice no", "bob no"], "aborted"],
    [{ k: 1 }, ["bob yes"], "committed"],
    [{ k: 2 }, ["alice no", "bob no"], "aborted"],
    ["all", ["bob no"], "aborted"],
    [{ k: 1 }, ["carol veto"], "aborted"],
  ])("%j after %j is %s: decided as soon as the outcome is certain", async (rule, votes, state) => {
    const proposal = await open({ rule });
    for (const each of votes) {
      const [voter, kind] = each.split(" ") as [string, VoteKind];
      await vote(proposal, voter, kind);
    }
    expect((await read(proposal)).state).toBe(state);
  });

  test("the hash covers everything that is agreed on, and anybody can compute it", async () => {
    const proposal = await open({ rule: { k: 2 } });
    const { subject, proposer, electorate, rule, deadline, pins, writes } = proposal;
    expect(proposal.hash).toBe(sha256(canonicalJson({ subject, proposer, electorate, rule, deadline, pins, writes })));
  });

  test("A2 the same member counts once: a repeat, also with another word, changes nothing and answers with the first vote", async () => {
    const proposal = await open({ rule: { k: 2 } });
    await vote(proposal, "alice");
    for (const kind of ["yes", "no", "veto"] as const) {
      const answer = await vote(proposal, "alice", kind);
      expect(answer).toMatchObject({ state: "open", votes: [{ voter: "alice", vote: "yes" }] });
    }
    await Promise.all(Array.from({ length: 10 }, () => vote(proposal, "alice")));
    expect((await read(proposal)).votes).toHaveLength(1);
    expect(await events(proposal)).toEqual(["proposal.opened", "proposal.voted"]);
  });

  test("A2 a vote on another hash counts for nothing, also when somebody swapped the proposal behind it", async () => {
    const proposal = await open({ rule: { k: 1 } });
    const other = await open({ rule: { k: 1 }, subject: "something else" });
    const refused = vote(proposal, "bob", "yes", parts, other.hash);
    await expect(refused).rejects.toMatchObject({ code: "proposal.other_hash", details: { hash: proposal.hash } });
    await place.tamper(`update proposals set hash = '${other.hash}', subject = 'something else' where id = '${proposal.id}'`);
    await expect(vote(proposal, "bob")).rejects.toMatchObject({ code: "proposal.other_hash" });
    expect(await read(proposal)).toMatchObject({ state: "open", votes: [] });
  });

  test("A2 whoever changes a proposal behind its hash gets no votes for it", async () => {
    const proposal = await open({ rule: { k: 1 } });
    await place.tamper(`update proposals set electorate = '["alice","bob","mallory"]' where id = '${proposal.id}'`);
    await expect(vote(proposal, "mallory")).rejects.toMatchObject({ code: "proposal.other_hash" });
    await expect(vote(proposal, "bob")).rejects.toMatchObject({ code: "proposal.other_hash" });
    expect((await read(proposal)).state).toBe("open");
  });

  test("A2 votes on a hash the proposal no longer has do not decide it", async () => {
    const proposal = await open({ rule: { k: 2 } });
    await vote(proposal, "alice");
    const swapped = hashOf({ ...proposal, subject: "something else" });
    await place.tamper(`update proposals set hash = '${swapped}', subject = 'something else' where id = '${proposal.id}'`);
    expect((await vote(proposal, "bob", "yes", parts, swapped)).state).toBe("open");
  });

  test("A2 outsiders may not vote, whether or not they may read the proposal", async () => {
    const proposal = await open({ electorate: ["bob"] });
    const stranger = guest("mallory");
    const channel = { ...guest("bob"), kind: "channel" as const };
    for (const caller of [guest("alice"), OPERATOR, READER, { ...READER, name: "bob" }, stranger, channel]) {
      const refused = castVote(parts, caller, proposal.id, { vote: "yes", hash: proposal.hash });
      await expect(refused).rejects.toMatchObject({ code: "proposal.not_elector" });
    }
    const unknown = "0".repeat(20);
    for (const caller of [stranger, channel]) {
      const words = (id: string) => ({ code: "request.not_found", message: `there is no proposal "${id}"`, details: {} });
      await expect(castVote(parts, caller, unknown, { vote: "yes", hash: proposal.hash })).rejects.toMatchObject(words(unknown));
      await expect(read(proposal, caller)).rejects.toMatchObject(words(proposal.id));
      await expect(parts.agreements.read(caller, unknown)).rejects.toMatchObject(words(unknown));
    }
    expect((await read(proposal, guest("alice"))).votes).toEqual([]);
    expect((await read(proposal, READER)).state).toBe("open");
  });

  test("A2 the electorate is frozen: whoever comes later does not count, and the same name twice is no two members", async () => {
    expect(newProposal.safeParse({ subject: "x", electorate: ["a", "a"], rule: "all", deadline_ms: 1 }).success).toBe(false);
    expect(newProposal.safeParse({ subject: "x", electorate: ["*"], rule: "all", deadline_ms: 1 }).success).toBe(false);
    expect(newProposal.safeParse({ subject: "x", electorate: ["a"], rule: { k: 2 }, deadline_ms: 1 }).success).toBe(false);
    expect(newProposal.safeParse({ subject: "x", electorate: names(1_001), rule: "all", deadline_ms: 1 }).success).toBe(false);
    const proposal = await open({ electorate: ["alice", "bob"], rule: { k: 2 } });
    await vote(proposal, "alice");
    await expect(vote(proposal, "carol")).rejects.toMatchObject({ code: "proposal.not_elector" });
    await place.tamper(`insert into proposal_viewers (viewer, proposal) values ('carol', '${proposal.id}')`);
    await expect(vote(proposal, "carol")).rejects.toMatchObject({ code: "proposal.not_elector" });
    expect((await read(proposal)).state).toBe("open");
  });

  test("A3 an outcome never changes, whatever is asked afterwards", async () => {
    const committed = await open({ rule: { k: 1 } });
    const aborted = await open({ rule: { k: 1 } });
    const before = [await vote(committed, "bob"), await vote(aborted, "bob", "veto")];
    for (const proposal of [committed, aborted]) {
      await expect(vote(proposal, "alice", "veto")).rejects.toMatchObject({ code: "proposal.closed" });
      const { state } = await read(proposal);
      await expect(vote(proposal, "carol")).rejects.toMatchObject({ code: "proposal.closed", details: { state } });
      expect(await vote(proposal, "bob", "no")).toMatchObject({ votes: [{ voter: "bob" }] });
    }
    await place.elapse(60_001);
    expect(await decideDue(parts, 100)).toBe(0);
    expect([await read(committed), await read(aborted)]).toEqual(before);
  });

  test("A1 A3 many readers on two nodes never see two outcomes, nor an outcome taken back", async () => {
    const other = partsOn(await place.open());
    const electorate = names(12);
    const proposals = await Promise.all(Array.from({ length: 6 }, () => open({ electorate, rule: "majority" })));
    let voting = true;
    const watch = async (node: AgreementParts): Promise<string[][]> => {
      const seen = proposals.map((): string[] => []);
      while (voting)
        for (const [index, proposal] of proposals.entries()) {
          const { state, votes } = await read(proposal, OPERATOR, node);
          const yes = votes.filter((each) => each.vote === "yes").length;
          if (state === "committed") expect(yes).toBeGreaterThanOrEqual(7);
          if (state === "open") expect(yes).toBeLessThan(7);
          if (seen[index]?.at(-1) !== state) seen[index]?.push(state);
        }
      return seen;
    };
    const watching = Promise.all([parts, other, parts, other].map(watch));
    // It is looked at when the voting is over; until then nobody listens.
    watching.catch(() => {});
    await Promise.all(
      proposals.flatMap((proposal, which) =>
        electorate.map((voter, index) =>
          vote(proposal, voter, (index * 7 + which) % 3 === 0 ? "no" : "yes", index % 2 ? parts : other).catch((error) => {
            expect(error).toMatchObject({ code: "proposal.closed" });
          }),
        ),
      ),
    );
    voting = false;
    const final = await Promise.all(proposals.map((proposal) => read(proposal)));
    expect(final.every(({ state }) => state !== "open")).toBe(true);
    for (const seen of await watching)
      for (const [index, states] of seen.entries())
        expect([[], ["open"], ["open", final[index]?.state], [final[index]?.state]]).toContainEqual(states);
  });

  test("A3 the last votes race on two nodes: one decision, one event, one answer to all", async () => {
    const other = partsOn(await place.open());
    for (let round = 0; round < 10; round++) {
      const proposal = await open({ rule: { k: 2 } });
      await vote(proposal, "alice");
      const answers = await Promise.allSettled([vote(proposal, "bob", "yes"), vote(proposal, "carol", "veto", other)]);
      const { state } = await read(proposal);
      expect(state).not.toBe("open");
      for (const answer of answers) {
        if (answer.status === "fulfilled") expect(answer.value.state).toBe(state);
        else expect(answer.reason).toMatchObject({ code: "proposal.closed", details: { state } });
      }
      expect((await events(proposal)).filter((type) => /committed|aborted/.test(type))).toHaveLength(1);
    }
  });

  test("A4 the deadline is the database's: a vote at it is too late, and aborts the proposal instead", async () => {
    const proposal = await open({ rule: { k: 1 } });
    await place.elapse(60_000);
    await expect(vote(proposal, "bob")).rejects.toMatchObject({
      code: "proposal.closed",
      details: { state: "aborted", because: "the deadline has passed" },
    });
    expect(await read(proposal)).toMatchObject({ state: "aborted", votes: [] });
    expect(await events(proposal)).toEqual(["proposal.opened", "proposal.aborted"]);
  });

  test("A4 exactly at the deadline it is too late", async () => {
    const proposal = await open({ rule: { k: 1 } });
    // Time stands still at the deadline.
    const frozen = makePlace.name === "sqlitePlace" ? await place.open({ clock: { now: () => proposal.deadline } }) : parts.store;
    if (place.kind === "postgres")
      await place.tamper(
        `create or replace function now_ms() returns bigint language sql volatile parallel safe as $$ select ${proposal.deadline}::bigint $$`,
      );
    await expect(vote(proposal, "bob", "yes", partsOn(frozen))).rejects.toMatchObject({
      code: "proposal.closed",
      details: { state: "aborted" },
    });
  });

  test("A4 nobody votes any more: the sweep decides every proposal past its deadline, once, on however many nodes", async () => {
    const other = partsOn(await place.open());
    const due = await Promise.all(Array.from({ length: 8 }, () => open()));
    await vote(due[0] as Proposal, "alice");
    const later = await open({ deadline_ms: 120_000 });
    expect(await decideDue(parts, 100)).toBe(0);
    await place.elapse(60_000);
    const counts = await Promise.all([decideDue(parts, 100), decideDue(other, 100), decideDue(parts, 100)]);
    expect(counts.reduce((sum, count) => sum + count)).toBe(8);
    for (const proposal of due) {
      expect(await read(proposal)).toMatchObject({ state: "aborted", because: "the deadline has passed" });
      expect((await events(proposal)).filter((type) => type === "proposal.aborted")).toHaveLength(1);
    }
    expect((await read(later)).state).toBe("open");
  });

  test("A4 the sweep takes no more than it is asked to", async () => {
    await Promise.all(Array.from({ length: 5 }, () => open()));
    await place.elapse(60_000);
    expect([await decideDue(parts, 3), await decideDue(parts, 3), await decideDue(parts, 3)]).toEqual([3, 2, 0]);
  });

  test("A4 last votes race with the sweep at the deadline: one outcome, and it fits the votes", async () => {
    const other = partsOn(await place.open());
    for (let round = 0; round < 5; round++) {
      const proposal = await open({ rule: { k: 1 }, deadline_ms: 40 });
      const attempts: Promise<unknown>[] = [];
      const failures: unknown[] = [];
      for (let turn = 0; turn < 8; turn++) {
        const voter = ["alice", "bob", "carol"][turn % 3] as string;
        attempts.push(
          vote(proposal, voter, turn < 3 ? "no" : "yes", turn % 2 ? parts : other).catch(() => undefined),
          decideDue(other, 10).catch((error: unknown) => failures.push(error)),
        );
        await new Promise((resolve) => setTimeout(resolve, 8));
      }
      await Promise.all(attempts);
      expect(failures).toEqual([]);
      await decideDue(parts, 100);
      const { state, votes, deadline } = await read(proposal);
      expect(state).not.toBe("open");
      expect(state === "committed").toBe(votes.some((each) => each.vote === "yes"));
      for (const each of votes) expect(each.at).toBeLessThan(deadline);
    }
  });

  test("A2 A3 whatever is voted in whatever order on two nodes, the outcome is what the rule says about the votes that counted", async () => {
    const other = partsOn(await place.open());
    const cases = fc.integer({ min: 1, max: 6 }).chain((electors) =>
      fc.record({
        electors: fc.constant(electors),
        rule: fc.oneof(
          fc.constantFrom<Rule>("all", "majority"),
          fc.integer({ min: 1, max: electors }).map((k): Rule => ({ k })),
        ),
        attempts: fc.array(
          fc.record({
            voter: fc.nat(electors),
            vote: fc.constantFrom<VoteKind>("yes", "yes", "no", "no", "veto"),
            right: fc.nat(5).map((chance) => chance > 0),
            second: fc.boolean(),
          }),
          { maxLength: 14 },
        ),
      }),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ({ electors, rule, attempts }) => {
        const proposal = await open({ electorate: names(electors), rule });
        await Promise.all(
          attempts.map((each) =>
            vote(
              proposal,
              `elector-${each.voter}`,
              each.vote,
              each.second ? other : parts,
              each.right ? proposal.hash : "0".repeat(64),
            ).catch((error) => expect(["proposal.closed", "proposal.other_hash", "proposal.not_elector"]).toContain(error.code)),
          ),
        );
        const { state, votes } = await read(proposal);
        expect(new Set(votes.map((each) => each.voter)).size).toBe(votes.length);
        for (const { voter, vote: kind } of votes) {
          expect(names(electors)).toContain(voter);
          expect(attempts.some((each) => each.right && `elector-${each.voter}` === voter && each.vote === kind)).toBe(true);
        }
        const count = (kind: VoteKind): number => votes.filter((each) => each.vote === kind).length;
        const needed = neededYes(rule, electors);
        const met = count("veto") === 0 && count("yes") >= needed;
        const lost = count("veto") > 0 || electors - count("no") < needed;
        expect(state).toBe(met ? "committed" : lost ? "aborted" : "open");
      }),
      { seed: SEED, numRuns: makePlace.name === "sqlitePlace" ? 100 : 40 },
    );
  });

  test("a proposer has at most 100 open, however many it opens at once, and decided ones count no more", async () => {
    const other = partsOn(await place.open());
    const draft = newProposal.parse({ subject: "x", electorate: ["bob"], rule: "all", deadline_ms: 60_000 });
    const opened = await Promise.allSettled(
      Array.from({ length: 110 }, (_, index) => openProposal(index % 2 ? parts : other, newId, guest("busy"), draft)),
    );
    const ids = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    expect(ids).toHaveLength(100);
    for (const each of opened) if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "request.busy" });
    await vote(ids[0] as Proposal, "bob");
    const next = await openProposal(parts, newId, guest("busy"), draft);
    await expect(openProposal(parts, newId, guest("busy"), draft)).rejects.toMatchObject({ code: "request.busy" });
    await openProposal(parts, newId, guest("idle"), draft);
    await place.elapse(60_000);
    expect(await decideDue(parts, 1_000)).toBe(101);
    expect((await read(next)).state).toBe("aborted");
  });

  test("a thousand electors are counted like three", async () => {
    const electorate = names(1_000);
    const proposal = await open({ electorate, rule: { k: 3 } });
    for (const voter of electorate.slice(-3)) await vote(proposal, voter);
    expect(await read(proposal, guest("elector-0"))).toMatchObject({ state: "committed" });
  });

  test("a list shows what one may see, the newest first, and continues where it ended", async () => {
    const mine = await open({ electorate: ["bob"] });
    await new Promise((resolve) => setTimeout(resolve, 2));
    const theirs = await open({ electorate: ["carol"] }, guest("dave"));
    await vote(mine, "bob");
    const list = async (caller: Caller, query = {}) =>
      (await parts.agreements.list(caller, { limit: 50, ...query })).proposals.map((each) => each.id);
    expect(await list(OPERATOR)).toEqual([theirs.id, mine.id]);
    expect(await list(READER, { limit: 1 })).toEqual([theirs.id]);
    expect(await list(OPERATOR, { before: theirs.id })).toEqual([mine.id]);
    expect(await list(OPERATOR, { state: "open" })).toEqual([theirs.id]);
    expect(await list(guest("bob"))).toEqual([mine.id]);
    expect(await list(guest("alice"), { state: "committed" })).toEqual([mine.id]);
    expect(await list(guest("carol"))).toEqual([theirs.id]);
    expect(await list(guest("mallory"))).toEqual([]);
    expect(await list({ ...guest("carol"), kind: "channel" })).toEqual([]);
  });

  test("tokens that only read propose nothing", async () => {
    await expect(open({}, READER)).rejects.toMatchObject({ code: "request.forbidden" });
    await expect(open({}, { ...guest("x"), kind: "channel" })).rejects.toMatchObject({ code: "request.forbidden" });
    expect((await open({ electorate: ["operator"], rule: "all" }, OPERATOR)).proposer).toBe("operator");
  });
});

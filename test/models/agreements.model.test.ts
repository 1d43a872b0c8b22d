import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { castVote } from "../../src/acts/cast-vote.ts";
import { decideDue } from "../../src/acts/decide-due.ts";
import type { AgreementParts } from "../../src/acts/decide-proposal.ts";
import { openProposal } from "../../src/acts/open-proposal.ts";
import type { Proposal, Rule, VoteKind } from "../../src/contract/proposals.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Agreements } from "../../src/records/agreements/agreements.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { Elapse } from "./elapse.ts";
import { runsOf, SEED } from "./seed.ts";

interface Expected {
  readonly proposal: Proposal;
  readonly electorate: readonly string[];
  readonly needed: number;
  readonly until: number;
  state: Proposal["state"];
  readonly votes: Map<string, VoteKind>;
}

interface Model {
  now: number;
  readonly proposals: Expected[];
}

interface Real {
  readonly parts: AgreementParts;
  readonly place: StorePlace;
}

const DEADLINE = 60_000;
const NAMES = ["a", "b", "c", "d", "outsider"];
const newId = idSource(systemClock, systemRandom);
const guest = (name: string): Caller => ({ kind: "guest", name, roles: [], run: null, step: null, call: null });

const NEEDED: Readonly<Record<string, (electors: number) => number>> = {
  all: (electors) => electors,
  majority: (electors) => Math.floor(electors / 2) + 1,
};

async function compare(expected: Expected, { parts }: Real): Promise<void> {
  const { state, votes, electorate, hash } = await parts.agreements.read(OPERATOR, expected.proposal.id);
  expect({ state, votes: new Map(votes.map(({ voter, vote }) => [voter, vote])), electorate, hash }).toEqual({
    state: expected.state,
    votes: expected.votes,
    electorate: expected.electorate,
    hash: expected.proposal.hash,
  });
}

class Propose implements fc.AsyncCommand<Model, Real> {
  readonly electors: number;
  readonly rule: Rule;
  constructor(electors: number, rule: Rule) {
    this.electors = electors;
    this.rule = rule;
  }
  check = () => true;
  async run(model: Model, { parts }: Real): Promise<void> {
    const electorate = NAMES.slice(0, this.electors);
    const rule = typeof this.rule === "string" ? this.rule : { k: Math.min(this.rule.k, this.electors) };
    const needed = typeof rule === "string" ? (NEEDED[rule]?.(this.electors) ?? 0) : rule.k;
    const draft = { subject: "s", electorate, rule, deadline_ms: DEADLINE, pins: [], writes: [] };
    const proposal = await openProposal(parts, newId, guest("proposer"), draft);
    model.proposals.push({ proposal, electorate, needed, until: model.now + DEADLINE, state: "open", votes: new Map() });
  }
  toString = () => `propose to ${this.electors} by ${JSON.stringify(this.rule)}`;
}

class Vote implements fc.AsyncCommand<Model, Real> {
  readonly pick: number;
  readonly voter: string;
  readonly vote: VoteKind;
  readonly right: boolean;
  constructor(pick: number, voter: string, vote: VoteKind, right: boolean) {
    this.pick = pick;
    this.voter = voter;
    this.vote = vote;
    this.right = right;
  }
  check = (model: Readonly<Model>) => model.proposals.length > 0;
  async run(model: Model, real: Real): Promise<void> {
    const expected = model.proposals[this.pick % model.proposals.length] as Expected;
    const hash = this.right ? expected.proposal.hash : "0".repeat(64);
    const answer = await castVote(real.parts, guest(this.voter), expected.proposal.id, { vote: this.vote, hash }).then(
      ({ state }) => state,
      (error) => error.code,
    );
    expect(answer).toBe(this.#expect(model, expected));
    await compare(expected, real);
  }
  #expect(model: Model, expected: Expected): string {
    if (!expected.electorate.includes(this.voter)) return "proposal.not_elector";
    if (!this.right) return "proposal.other_hash";
    const late = model.now >= expected.until;
    if (expected.state === "open" && late) expected.state = "aborted";
    if (expected.votes.has(this.voter)) return expected.state;
    if (expected.state !== "open") return "proposal.closed";
    expected.votes.set(this.voter, this.vote);
    const given = [...expected.votes.values()];
    const yes = given.filter((each) => each === "yes").length;
    const against = given.length - yes;
    if (given.includes("veto") || expected.electorate.length - against < expected.needed) expected.state = "aborted";
    else if (yes >= expected.needed) expected.state = "committed";
    return expected.state;
  }
  toString = () => `${this.voter} votes ${this.vote} on #${this.pick}${this.right ? "" : " with another hash"}`;
}

class Sweep implements fc.AsyncCommand<Model, Real> {
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    const due = model.proposals.filter((each) => each.state === "open" && model.now >= each.until);
    expect(await decideDue(real.parts, 1_000)).toBe(due.length);
    for (const each of due) each.state = "aborted";
    for (const each of model.proposals) await compare(each, real);
  }
  toString = () => "sweep";
}

const rules = fc.oneof(fc.constantFrom<Rule>("all", "majority"), fc.constantFrom<Rule>({ k: 1 }, { k: 2 }));
const votes = fc.constantFrom<VoteKind>("yes", "yes", "yes", "no", "no", "veto");
const commands = fc.commands(
  [
    fc.tuple(fc.integer({ min: 1, max: 4 }), rules).map(([electors, rule]) => new Propose(electors, rule)),
    fc
      .tuple(fc.nat(3), fc.constantFrom(...NAMES), votes, fc.nat(9))
      .map(([pick, voter, vote, chance]) => new Vote(pick, voter, vote, chance > 0)),
    // Real time passes too while the test runs; the steps keep clear of the exact moment of a deadline.
    fc.constantFrom(25_000, 100_000).map((ms) => new Elapse(ms)),
    fc.constant(new Sweep()),
  ],
  { maxCommands: 40 },
);

describe.each(PLACES)("agreements on %s behave like their model", (_name, makePlace) => {
  test("A2 A3 A4 whatever is proposed and voted, in whatever order", async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const place = makePlace();
        try {
          const store = await place.open();
          const parts = { store, agreements: new Agreements(store), pools: new Pools(store) };
          await fc.asyncModelRun(() => ({ model: { now: 0, proposals: [] }, real: { parts, place } }), sequence);
        } finally {
          await place.remove();
        }
      }),
      { seed: SEED, numRuns: runsOf(makePlace, 40, 12) },
    );
  });
});

import type { NewProposal, Pin, Proposal, ProposalList, ProposalQuery, VoteKind } from "../../contract/proposals.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { code, SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import {
  type HeldProposal,
  hashOf,
  heldFrom,
  type ProposalRow,
  proposalFrom,
  type SummaryRow,
  summaryFrom,
  type VoteRow,
} from "./proposal-rows.ts";
import type { Tally } from "./verdict.ts";
import { mayRead, noSuchProposal } from "./visibility.ts";

const MAX_OPEN = 100;
const MAX_BECAUSE = 1_000;
const VIEWERS_AT_ONCE = 200;
const SUMMARY = code("p.id, p.hash, p.subject, p.proposer, p.rule, p.deadline, p.external, p.state, p.because, p.created_at, p.decided_at");
const WHOLE = sql`${SUMMARY}, p.caller, p.electorate, p.pins, p.writes, p.opened`;
const PROPOSAL_ID = /^[0-9a-z]{20}$/;

/** For the pulse: whether a deadline has passed. */
export const PROPOSALS_DUE = sql`(select min(deadline) from proposals where state = 'open') <= now_ms()`;

/**
 * Proposals and their votes.
 *
 *   open → committed | aborted
 *
 * Whoever votes or decides holds the proposal's row first: votes are counted one after another, and it is decided once.
 */
export class Agreements {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The pins are the caller's and those of the attached writes; `external` is whether it rests on input from outside. */
  async openIn(tx: Tx, caller: Caller, id: string, draft: NewProposal, pins: readonly Pin[], external: boolean): Promise<Proposal> {
    await this.#countOpen(tx, caller.name);
    const now = await nowIn(tx);
    const { subject, electorate, rule, writes } = draft;
    const terms = { subject, proposer: caller.name, electorate, rule, deadline: now + draft.deadline_ms, pins, writes };
    const hash = hashOf(terms);
    const keys = writes.map(({ pool, key }) => ({ pool, key }));
    const [opened] = await this.#store.ledger.append(tx, {
      type: "proposal.opened",
      actor: caller.name,
      subject: ["proposal", id],
      data: { hash, rule, electors: electorate.length, deadline: terms.deadline, pins, writes: keys },
    });
    await tx.run`insert into proposals (id, hash, subject, proposer, caller, electorate, rule, deadline, pins, writes, external, state, opened, created_at)
      values (${id}, ${hash}, ${subject}, ${caller.name}, ${JSON.stringify(caller)}, ${JSON.stringify(electorate)}, ${JSON.stringify(rule)},
        ${terms.deadline}, ${JSON.stringify(pins)}, ${JSON.stringify(writes)}, ${external ? 1 : 0}, 'open', ${opened as number}, ${now})`;
    await addViewers(tx, id, [...new Set([caller.name, ...electorate])]);
    const { deadline } = terms;
    const label = external ? ("external" as const) : ("trusted" as const);
    const fresh = { label, state: "open" as const, votes: [], because: null, createdAt: now, decidedAt: null };
    return { id, subject, hash, proposer: caller.name, electorate, rule, deadline, pins: [...pins], writes, ...fresh };
  }

  /** Holds the proposal until the transaction ends. Undefined: there is none. */
  async holdIn(tx: Tx, id: string): Promise<HeldProposal | undefined> {
    if (!PROPOSAL_ID.test(id)) return undefined;
    const row = await tx.get<ProposalRow>`select ${WHOLE} from proposals as p where p.id = ${id} ${this.#store.dialect.forUpdate}`;
    // Asked when the row is ours: the same statement would have looked at the clock before it waited for the row.
    return row && heldFrom(row, await nowIn(tx));
  }

  /** The vote this identity has given before. */
  async voteOfIn(tx: Tx, proposal: HeldProposal, voter: string): Promise<VoteKind | undefined> {
    const row = await tx.get<{ vote: VoteKind }>`select vote from votes where proposal = ${proposal.id} and voter = ${voter}`;
    return row?.vote;
  }

  /** Answers the number of its event. */
  async voteIn(tx: Tx, proposal: HeldProposal, voter: string, vote: VoteKind): Promise<number> {
    await tx.run`insert into votes (proposal, voter, vote, hash, at) values (${proposal.id}, ${voter}, ${vote}, ${proposal.hash}, ${proposal.now})`;
    const [voted] = await this.#store.ledger.append(tx, {
      type: "proposal.voted",
      actor: voter,
      subject: ["proposal", proposal.id],
      causedBy: proposal.opened,
      data: { vote, hash: proposal.hash },
    });
    return voted as number;
  }

  async tallyIn(tx: Tx, proposal: HeldProposal): Promise<Tally> {
    const rows = await tx.all<{ vote: VoteKind; count: number }>`
      select vote, count(*) as count from votes where proposal = ${proposal.id} and hash = ${proposal.hash} group by vote`;
    const count = (vote: VoteKind): number => Number(rows.find((row) => row.vote === vote)?.count ?? 0);
    return { yes: count("yes"), no: count("no"), veto: count("veto") };
  }

  async closeIn(
    tx: Tx,
    proposal: HeldProposal,
    state: "committed" | "aborted",
    because: string,
    actor: string,
    causedBy: number,
  ): Promise<void> {
    const reason = because.slice(0, MAX_BECAUSE);
    const closed = await tx.run`update proposals set state = ${state}, because = ${reason}, decided_at = ${proposal.now}
      where id = ${proposal.id} and state = 'open'`;
    if (closed === 0) throw new Failure("internal.bug", `proposal ${proposal.id} was decided twice`);
    await tx.run`update proposers set open = open - 1 where name = ${proposal.proposer}`;
    const data = { hash: proposal.hash, because: reason };
    await this.#store.ledger.append(tx, { type: `proposal.${state}`, actor, subject: ["proposal", proposal.id], causedBy, data });
  }

  /** Open proposals whose deadline has passed, the oldest first. */
  async due(limit: number): Promise<string[]> {
    const rows = await this.#store.read.all<{ id: string }>`select id from proposals
      where state = 'open' and deadline <= now_ms() order by deadline limit ${limit}`;
    return rows.map((row) => row.id);
  }

  /** State and votes of one moment. */
  async read(caller: Caller, id: string): Promise<Proposal> {
    const found = PROPOSAL_ID.test(id) ? await this.#store.snapshot((reads) => this.readIn(reads, id)) : undefined;
    if (!found || !mayRead(caller, found)) throw noSuchProposal(id);
    return found;
  }

  async readIn(reads: Reads, id: string): Promise<Proposal | undefined> {
    const row = await reads.get<ProposalRow>`select ${WHOLE} from proposals as p where p.id = ${id}`;
    if (!row) return undefined;
    return proposalFrom(row, await reads.all<VoteRow>`select voter, vote, at from votes where proposal = ${id} order by at, voter`);
  }

  /** What the caller may see, the newest first. */
  async list(caller: Caller, query: ProposalQuery): Promise<ProposalList> {
    if (caller.kind === "channel") return { proposals: [] };
    const state = query.state === undefined ? code("") : sql`and p.state = ${query.state}`;
    const before = query.before === undefined ? code("") : sql`and p.id < ${query.before}`;
    const everything = caller.kind === "operator" || caller.kind === "reader";
    const rows = everything
      ? await this.#store.read.all<SummaryRow>`select ${SUMMARY} from proposals as p
          where 1 = 1 ${state} ${before} order by p.id desc limit ${query.limit}`
      : await this.#store.read.all<SummaryRow>`select ${SUMMARY} from proposal_viewers as v join proposals as p on p.id = v.proposal
          where v.viewer = ${caller.name} ${state} ${before} order by v.proposal desc limit ${query.limit}`;
    return { proposals: rows.map(summaryFrom) };
  }

  async #countOpen(tx: Tx, proposer: string): Promise<void> {
    const row = await tx.get<{ open: number }>`insert into proposers (name, open) values (${proposer}, 1)
      on conflict (name) do update set open = proposers.open + 1 returning open`;
    if ((row?.open ?? 0) > MAX_OPEN)
      throw new Failure("request.busy", `"${proposer}" has ${MAX_OPEN} open proposals already`, {
        hint: "Wait until some of them are decided.",
      });
  }
}

async function nowIn(tx: Tx): Promise<number> {
  const row = await tx.get<{ now: number }>`select now_ms() as now`;
  return row?.now as number;
}

async function addViewers(tx: Tx, proposal: string, viewers: readonly string[]): Promise<void> {
  for (let start = 0; start < viewers.length; start += VIEWERS_AT_ONCE) {
    const rows = viewers.slice(start, start + VIEWERS_AT_ONCE).map((viewer) => sql`(${viewer}, ${proposal})`);
    const separators = rows.map((_, index) => (index === 0 ? "" : ", "));
    await tx.run`insert into proposal_viewers (viewer, proposal) values ${new SqlFragment([...separators, ""], rows)}`;
  }
}

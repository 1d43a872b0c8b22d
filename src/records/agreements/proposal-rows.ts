import type { Pin, Proposal, ProposalList, ProposalState, ProposedWrite, Rule, VoteKind } from "../../contract/proposals.ts";
import type { Caller } from "../../kernel/caller.ts";
import { canonicalJson, sha256 } from "../../kernel/canonical-json.ts";

/** What a vote is about; it never changes. */
export interface Terms {
  readonly subject: string;
  readonly proposer: string;
  readonly electorate: readonly string[];
  readonly rule: Rule;
  /** Time of the database. */
  readonly deadline: number;
  readonly pins: readonly Pin[];
  readonly writes: readonly ProposedWrite[];
}

export function hashOf({ subject, proposer, electorate, rule, deadline, pins, writes }: Terms): string {
  return sha256(canonicalJson({ subject, proposer, electorate, rule, deadline, pins, writes }));
}

export interface SummaryRow {
  readonly id: string;
  readonly hash: string;
  readonly subject: string;
  readonly proposer: string;
  readonly rule: string;
  readonly deadline: number;
  readonly external: number;
  readonly state: ProposalState;
  readonly because: string | null;
  readonly created_at: number;
  readonly decided_at: number | null;
}

export interface ProposalRow extends SummaryRow {
  readonly caller: string;
  readonly electorate: string;
  readonly pins: string;
  readonly writes: string;
  /** The event of its opening. */
  readonly opened: number;
}

export interface VoteRow {
  readonly voter: string;
  readonly vote: VoteKind;
  readonly at: number;
}

/** A proposal whose row the transaction holds: nobody else decides it meanwhile. */
export interface HeldProposal extends Terms {
  readonly id: string;
  readonly hash: string;
  readonly state: ProposalState;
  readonly caller: Caller;
  readonly opened: number;
  readonly external: boolean;
  /** The database's time since when it is held. */
  readonly now: number;
}

export function heldFrom(row: ProposalRow, now: number): HeldProposal {
  const terms = termsOf(row);
  // The hash of what is there now: somebody who changed the row has changed the hash, and the votes on the former one no longer count.
  return {
    id: row.id,
    hash: hashOf(terms),
    state: row.state,
    caller: JSON.parse(row.caller),
    opened: row.opened,
    external: row.external === 1,
    now,
    ...terms,
  };
}

export function proposalFrom(row: ProposalRow, votes: readonly VoteRow[]): Proposal {
  const { electorate, pins, writes } = termsOf(row);
  return { ...summaryFrom(row), electorate: [...electorate], pins: [...pins], writes: [...writes], votes: [...votes] };
}

export function summaryFrom(row: SummaryRow): ProposalList["proposals"][number] {
  return {
    id: row.id,
    subject: row.subject,
    hash: row.hash,
    proposer: row.proposer,
    rule: JSON.parse(row.rule),
    deadline: row.deadline,
    label: row.external === 1 ? "external" : "trusted",
    state: row.state,
    because: row.because,
    createdAt: row.created_at,
    decidedAt: row.decided_at,
  };
}

function termsOf(row: ProposalRow): Terms {
  return {
    subject: row.subject,
    proposer: row.proposer,
    electorate: JSON.parse(row.electorate),
    rule: JSON.parse(row.rule),
    deadline: row.deadline,
    pins: JSON.parse(row.pins),
    writes: JSON.parse(row.writes),
  };
}

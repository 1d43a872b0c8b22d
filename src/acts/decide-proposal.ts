import type { Proposal } from "../contract/proposals.ts";
import { type Failure, isFailure } from "../kernel/failure.ts";
import type { Agreements } from "../records/agreements/agreements.ts";
import type { HeldProposal } from "../records/agreements/proposal-rows.ts";
import { verdictOf } from "../records/agreements/verdict.ts";
import type { Pools } from "../records/pools/pools.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { movedPin, writeAttached } from "./attached-writes.ts";

export interface AgreementParts {
  readonly store: Store;
  readonly agreements: Agreements;
  readonly pools: Pools;
}

/** Keeps the answer with its effect: called in the transaction that has it. */
export type RecordProposal = (tx: Tx, proposal: Proposal) => Promise<void>;

/** Who brought the decision about, and by which event. */
export interface Cause {
  readonly actor: string;
  readonly causedBy: number;
}

/**
 * Decides an open proposal that the transaction holds, if its outcome is certain now. A commit carries its writes: when they are
 * refused the transaction ends with `WritesRefused`, and is to be run again with the reason, which then aborts the proposal.
 */
export async function decideIn(
  { agreements, pools }: AgreementParts,
  tx: Tx,
  proposal: HeldProposal,
  cause: Cause,
  refused: string | null,
): Promise<void> {
  const close = (state: "committed" | "aborted", because: string): Promise<void> =>
    agreements.closeIn(tx, proposal, state, because, cause.actor, cause.causedBy);
  const verdict = verdictOf(proposal.rule, proposal.electorate.length, await agreements.tallyIn(tx, proposal));
  if (verdict.kind === "lost") return close("aborted", verdict.because);
  if (verdict.kind === "undecided") {
    if (proposal.now >= proposal.deadline) await close("aborted", "the deadline has passed");
    return;
  }
  if (refused !== null) return close("aborted", refused);
  const moved = await untilRefused(() => movedPin(tx, pools, proposal));
  if (moved) return close("aborted", moved.message);
  await untilRefused(() => writeAttached(tx, pools, proposal, cause.causedBy));
  await close("committed", verdict.because);
}

/**
 * Runs the attempt, and once more with the reason if its writes were refused. In between nothing is left of it, and whoever comes
 * first then decides: this attempt, another voter, or the deadline.
 */
export async function orAborted<T>(attempt: (refused: string | null) => Promise<T>): Promise<T> {
  try {
    return await attempt(null);
  } catch (error) {
    if (!(error instanceof WritesRefused)) throw error;
    return attempt(`a write was refused: ${error.failure.message}`);
  }
}

class WritesRefused extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** A refusal says no to the proposal; a database that does not answer, or a defect of ours, says nothing about it. */
async function untilRefused<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isFailure(error) && /^(pool|request)\./.test(error.code)) throw new WritesRefused(error);
    throw error;
  }
}

import type { NewVote, Proposal } from "../contract/proposals.ts";
import type { Caller } from "../kernel/caller.ts";
import { Failure } from "../kernel/failure.ts";
import type { HeldProposal } from "../records/agreements/proposal-rows.ts";
import { mayVote, noSuchProposal } from "../records/agreements/visibility.ts";
import type { Tx } from "../store/engine.ts";
import { type AgreementParts, decideIn, orAborted, type RecordProposal } from "./decide-proposal.ts";

/**
 * Counts a vote, and decides the proposal with it where that makes the outcome certain. The first vote of an identity stands: a
 * repeat, whatever it says, changes nothing and answers with the proposal. A vote that comes too late decides it instead.
 */
export async function castVote(
  parts: AgreementParts,
  caller: Caller,
  id: string,
  { vote, hash }: NewVote,
  record?: RecordProposal,
): Promise<Proposal> {
  const { store, agreements } = parts;
  const { counted, proposal } = await orAborted((refused) =>
    store.transact(
      "cast vote",
      async (tx) => {
        const held = await electorsProposal(parts, tx, caller, id, hash);
        const repeated = (await agreements.voteOfIn(tx, held, caller.name)) !== undefined;
        const inTime = held.state === "open" && held.now < held.deadline;
        if (held.state === "open") {
          const causedBy = !repeated && inTime ? await agreements.voteIn(tx, held, caller.name, vote) : held.opened;
          await decideIn(parts, tx, held, { actor: caller.name, causedBy }, refused);
        }
        const counted = repeated || inTime;
        const proposal = (await agreements.readIn(tx, id)) as Proposal;
        if (counted) await record?.(tx, proposal);
        return { counted, proposal };
      },
      "locked",
    ),
  );
  if (counted) return proposal;
  const { state, because } = proposal;
  throw new Failure("proposal.closed", `proposal ${id} is ${state}: ${because}`, { details: { state, because } });
}

async function electorsProposal(parts: AgreementParts, tx: Tx, caller: Caller, id: string, hash: string): Promise<HeldProposal> {
  const held = await parts.agreements.holdIn(tx, id);
  if (!held) throw noSuchProposal(id);
  // Also to somebody who may not read it: that there is a vote is no secret to whoever knows its id, what it is about is.
  if (!mayVote(caller, held)) throw new Failure("proposal.not_elector", `"${caller.name}" is not in the electorate of proposal ${id}`);
  if (held.hash !== hash)
    throw new Failure("proposal.other_hash", `proposal ${id} does not have this hash`, { details: { hash: held.hash } });
  return held;
}

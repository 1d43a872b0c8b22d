import type { NewProposal, Proposal } from "../contract/proposals.ts";
import type { Caller } from "../kernel/caller.ts";
import { Failure } from "../kernel/failure.ts";
import type { NewId } from "../kernel/ids.ts";
import type { Grant } from "../records/pools/access.ts";
import type { Tx } from "../store/engine.ts";
import { pinsOf } from "./attached-writes.ts";
import type { AgreementParts, RecordProposal } from "./decide-proposal.ts";

export interface OpenOptions {
  readonly record?: RecordProposal;
  /** What the step that proposes has declared: a proposal is no way around it. */
  readonly grant?: Grant;
}

/** Puts something to the vote. What the attached writes would replace is pinned in the same transaction. */
export async function openProposal(
  parts: AgreementParts,
  newId: NewId,
  caller: Caller,
  draft: NewProposal,
  { record, grant }: OpenOptions = {},
): Promise<Proposal> {
  const id = newId();
  return parts.store.transact(
    "open proposal",
    async (tx) => {
      const opened = await openProposalIn(parts, tx, id, caller, draft, grant ? { grant } : {});
      await record?.(tx, opened);
      return opened;
    },
    "locked",
  );
}

/** The same as part of a larger transaction. `external`: whether the turn that proposes carries words from outside. */
export async function openProposalIn(
  { pools, agreements }: AgreementParts,
  tx: Tx,
  id: string,
  caller: Caller,
  draft: NewProposal,
  { grant, external = false }: { readonly grant?: Grant; readonly external?: boolean } = {},
): Promise<Proposal> {
  if (caller.kind === "reader" || caller.kind === "channel") throw new Failure("request.forbidden", "this token may not propose anything");
  const pins = await pinsOf(tx, pools, caller, draft, grant);
  const tainted = external || (await pools.hasReadExternalIn(tx, caller));
  return agreements.openIn(tx, caller, id, draft, pins, tainted);
}

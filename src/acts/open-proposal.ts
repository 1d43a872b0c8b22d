import type { NewProposal, Proposal } from "../contract/proposals.ts";
import type { Caller } from "../kernel/caller.ts";
import { Failure } from "../kernel/failure.ts";
import type { NewId } from "../kernel/ids.ts";
import type { Grant } from "../records/pools/access.ts";
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
  if (caller.kind === "reader" || caller.kind === "channel") throw new Failure("request.forbidden", "this token may not propose anything");
  const id = newId();
  return parts.store.transact(
    "open proposal",
    async (tx) => {
      const pins = await pinsOf(tx, parts.pools, caller, draft, grant);
      const external = await parts.pools.hasReadExternalIn(tx, caller);
      const opened = await parts.agreements.openIn(tx, caller, id, draft, pins, external);
      await record?.(tx, opened);
      return opened;
    },
    "locked",
  );
}

import type { NewProposal, Proposal } from "../contract/proposals.ts";
import type { Caller } from "../kernel/caller.ts";
import { Failure } from "../kernel/failure.ts";
import type { NewId } from "../kernel/ids.ts";
import { pinsOf } from "./attached-writes.ts";
import type { AgreementParts, RecordProposal } from "./decide-proposal.ts";

/** Puts something to the vote. What the attached writes would replace is pinned in the same transaction. */
export async function openProposal(
  parts: AgreementParts,
  newId: NewId,
  caller: Caller,
  draft: NewProposal,
  record?: RecordProposal,
): Promise<Proposal> {
  if (caller.kind === "reader" || caller.kind === "channel") throw new Failure("request.forbidden", "this token may not propose anything");
  const id = newId();
  return parts.store.transact(
    "open proposal",
    async (tx) => {
      const pins = await pinsOf(tx, parts.pools, caller, draft);
      const external = await parts.pools.hasReadExternalIn(tx, caller);
      const opened = await parts.agreements.openIn(tx, caller, id, draft, pins, external);
      await record?.(tx, opened);
      return opened;
    },
    "locked",
  );
}

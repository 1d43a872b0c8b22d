import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";

interface Concerned {
  readonly proposer: string;
  readonly electorate: readonly string[];
}

export function mayRead(caller: Caller, proposal: Concerned): boolean {
  if (caller.kind === "operator" || caller.kind === "reader") return true;
  if (caller.kind === "channel") return false;
  return proposal.proposer === caller.name || proposal.electorate.includes(caller.name);
}

/** A token that may only read has no vote, whatever its name. */
export function mayVote(caller: Caller, proposal: Concerned): boolean {
  return caller.kind !== "reader" && caller.kind !== "channel" && proposal.electorate.includes(caller.name);
}

/** The same words for what does not exist and for what is not the caller's to see. */
export function noSuchProposal(id: string): Failure {
  return new Failure("request.not_found", `there is no proposal "${id}"`);
}

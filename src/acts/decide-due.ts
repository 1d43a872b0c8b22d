import { type AgreementParts, decideIn, orAborted } from "./decide-proposal.ts";

/** Decides proposals whose deadline has passed, so that none waits for voters that died. Answers how many it was the first to decide. */
export async function decideDue(parts: AgreementParts, limit: number): Promise<number> {
  let decided = 0;
  for (const id of await parts.agreements.due(limit)) if (await decideOne(parts, id)) decided++;
  return decided;
}

function decideOne(parts: AgreementParts, id: string): Promise<boolean> {
  return orAborted((refused) =>
    parts.store.transact(
      "decide due proposal",
      async (tx) => {
        const held = await parts.agreements.holdIn(tx, id);
        if (held?.state !== "open") return false;
        await decideIn(parts, tx, held, { actor: "guildhall", causedBy: held.opened }, refused);
        return true;
      },
      "locked",
    ),
  );
}

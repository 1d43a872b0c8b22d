import type { Address } from "../deciders/routing/address.ts";
import type { NewId } from "../kernel/ids.ts";
import {
  addReply,
  closeDraft,
  keepDraft,
  keepShown,
  leftDrafts,
  readDraft,
  recordShown,
  removeDraft,
  settleReply,
} from "../records/sessions/outbox.ts";
import { holdRunning } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { enqueueDelivery } from "./send-reply.ts";

const AT_ONCE = 100;

export interface DraftToShow {
  readonly runId: string;
  readonly address: Address;
  readonly text: string;
  readonly answers: string | null;
}

/** `shown`: the platform's id of it. `isNew`: it may be sent now, by whoever was told so. */
export interface Draft {
  readonly id: string;
  readonly shown: string | null;
  readonly isNew: boolean;
}

/**
 * A message that shows the turn is on its way. One for each run, whoever goes on with it; undefined: the turn does not run any more, and
 * nobody would ever finish it.
 */
export async function intendDraft(store: Store, newId: NewId, { runId, address, text, answers }: DraftToShow): Promise<Draft | undefined> {
  return store.transact(
    "intend draft",
    async (tx) => {
      if (!(await holdRunning(store, tx, runId))) return undefined;
      const known = await readDraft(tx, runId);
      if (known) return { id: known.id, shown: known.draft, isNew: false };
      const id = newId();
      // In private everybody sees what is answered.
      await addReply(tx, { id, runId, address, text, answers: address.chatType === "dm" ? null : answers }, "draft");
      await keepDraft(tx, id, 0, null);
      return { id, shown: null, isNew: true };
    },
    "locked",
  );
}

/** It is on the screen. False: its reply is being delivered already, without knowing of it. */
export function recordDraft(store: Store, id: string, shown: string): Promise<boolean> {
  return store.transact("record draft", (tx) => recordShown(tx, id, shown), "locked");
}

/** The platform has not taken it. */
export function dropDraft(store: Store, id: string): Promise<void> {
  return store.transact("drop draft", (tx) => removeDraft(tx, id), "locked");
}

/** For the case that nothing more is said. */
export function noteDraft(store: Store, id: string, text: string): Promise<void> {
  return store.transact("note draft", (tx) => keepShown(tx, id, text), "locked");
}

/** The turn ends without a word of its own: what it has shown stays, marked as what it is. */
export async function closeDraftIn(store: Store, tx: Tx, runId: string, mark: string, causedBy: number): Promise<void> {
  const closed = await closeDraft(tx, runId, mark);
  if (closed) await enqueueDelivery(store, tx, closed.address, { replyId: closed.id, runId, causedBy });
}

/** Whatever has become of its account: a draft whose turn is over is not on its way any more. */
export async function settleLeftDrafts(store: Store): Promise<void> {
  const left = await leftDrafts(store.read, AT_ONCE);
  if (left.length === 0) return;
  const problem = "its turn ended where nobody could deliver it any more";
  await store.transact(
    "settle left drafts",
    async (tx) => {
      for (const { id, runId } of left) {
        if (!(await settleReply(tx, id, { state: "unknown", ids: [], problem }))) continue;
        const data = { reply: id, ids: [], problem };
        await store.ledger.append(tx, { type: "reply.abandoned", actor: "guildhall", subject: ["run", runId], causedBy: null, data });
      }
    },
    "locked",
  );
}

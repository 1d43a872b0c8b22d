import { admitMessageIn, type MessageToAdmit } from "../src/acts/admit-message.ts";
import type { Admission } from "../src/contract/wire.ts";
import type { NewId } from "../src/kernel/ids.ts";
import type { Store } from "../src/store/store.ts";

/** As the intake does it, past the rules. */
export function admitMessage(store: Store, newId: NewId, message: MessageToAdmit): Promise<Admission> {
  const runId = newId();
  return store.transact("admit message", async (tx) => (await admitMessageIn(store, tx, runId, message)).admission, "locked");
}

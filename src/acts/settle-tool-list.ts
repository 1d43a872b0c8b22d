import { type Approvals, callHash } from "../records/access/approvals.ts";
import { addPin, lockPin, noteQuestion, type Pin, type PinKey, readPin, replacePin } from "../records/mcp/pins.ts";
import { changesBetween, type ToolList } from "../records/mcp/tool-list.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";

export interface ToolListParts {
  readonly store: Store;
  readonly approvals: Approvals;
}

/** `approval`: the question that waits for a person; null: one was asked a moment ago about yet another list. */
export type ToolListVerdict = { readonly kind: "pinned" } | { readonly kind: "changed"; readonly approval: string | null };

const PINNED: ToolListVerdict = { kind: "pinned" };
const ASKED_OF = "operator";
const EXPIRES_MS = 7 * 86_400_000;
/** A server that shows another list each time must not bury a person in questions. */
const ASK_AGAIN_MS = 60_000;

/**
 * Whether this list of a server's tools may be used.
 *
 *   no pin → this list is pinned, on first sight
 *   the pinned list → yes
 *   another list → no, and a person is asked once; when the answer is yes, this list is pinned instead
 */
export async function settleToolList(parts: ToolListParts, key: PinKey, list: ToolList): Promise<ToolListVerdict> {
  const { store } = parts;
  const known = await readPin(store.read, key);
  if (known?.hash === list.hash) return PINNED;
  return store.transact(
    "settle tool list",
    async (tx) => {
      if (await addPin(tx, key, list)) {
        await tell(store, tx, "mcp.pinned", key, { hash: list.hash, tools: list.tools.map(({ name }) => name), approval: null });
        return PINNED;
      }
      const pin = (await lockPin(tx, key, store.dialect.forUpdate)) as Pin;
      return pin.hash === list.hash ? PINNED : settleChanged(parts, tx, key, pin, list);
    },
    "locked",
  );
}

async function settleChanged({ store, approvals }: ToolListParts, tx: Tx, key: PinKey, pin: Pin, list: ToolList): Promise<ToolListVerdict> {
  const { agent, server } = key;
  const tool = `mcp__${server}`;
  const changes = changesBetween(pin.tools, list.tools);
  const args = { server, before: pin.hash, after: list.hash, ...changes };
  if (pin.asked !== null) {
    const isSame = pin.asked.hash === list.hash;
    if (!isSame && pin.asked.agoMs < ASK_AGAIN_MS) return { kind: "changed", approval: null };
    // About another list than this one it is void from here on.
    const answer = await approvals.consume(tx, pin.asked.id, callHash({ agent, tool, args }));
    if (isSame && answer === "used") {
      await replacePin(tx, key, list);
      const tools = list.tools.map(({ name }) => name);
      await tell(store, tx, "mcp.pinned", key, { hash: list.hash, tools, approval: pin.asked.id });
      return PINNED;
    }
    if (isSame && (answer === "not approved" || answer === "denied")) return { kind: "changed", approval: pin.asked.id };
  }
  const approval = await approvals.askIn(tx, { run: null, agent, tool, args, askedOf: ASKED_OF, expiresMs: EXPIRES_MS });
  await noteQuestion(tx, key, list.hash, approval);
  const names = {
    added: changes.added.map(({ name }) => name),
    removed: changes.removed,
    changed: changes.changed.map(({ name }) => name),
  };
  await tell(store, tx, "mcp.changed", key, { before: pin.hash, after: list.hash, ...names, approval });
  return { kind: "changed", approval };
}

function tell(store: Store, tx: Tx, type: "mcp.pinned" | "mcp.changed", { agent, server }: PinKey, data: unknown): Promise<unknown> {
  return store.ledger.append(tx, { type, actor: agent, subject: ["mcp", agent, server], data });
}

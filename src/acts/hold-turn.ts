import { noCrashPoints, type ReachedPoint } from "../kernel/crash-points.ts";
import type { Failure } from "../kernel/failure.ts";
import { addHeldTurn, heldAgents, heldTurnsOf, removeHeldTurns, removeOrphans } from "../records/agents/held-turns.ts";
import { type RunInput, waitRun, wakeRun } from "../records/sessions/runs.ts";
import type { Store } from "../store/store.ts";
import type { ClaimedWork } from "../store/work-queue.ts";

/** Whoever waits is looked at again after this, in case nobody has woken it. */
const HOLD_MS = 24 * 3_600_000;
const AT_ONCE = 200;

/** The agent may not answer now. The turn waits at the head of its conversation, holding nothing, and no attempt is counted. */
export async function holdTurn(
  store: Store,
  reached: ReachedPoint,
  item: ClaimedWork,
  run: RunInput,
  revision: number,
  why: Failure,
  causedBy: number,
): Promise<void> {
  await store.transact(
    "hold turn",
    async (tx) => {
      await store.queue.park(tx, item, HOLD_MS);
      await addHeldTurn(tx, { workId: item.id, agent: run.agent, runId: run.id, revision });
      await waitRun(tx, run.id);
      const data = { code: why.code, message: why.message };
      await store.ledger.append(tx, { type: "turn.held", actor: run.agent, subject: ["run", run.id], causedBy, data });
    },
    "locked",
  );
  reached("turn.held");
}

/**
 * Lets go of the turns whose agent no longer waits, in their order. Any node may call it, often: a turn that is woken once too often is
 * held again, and one that is held while this runs is found the next time.
 */
export async function wakeHeldTurns(
  store: Store,
  waits: (agent: string, revision: number) => boolean | Promise<boolean>,
  reached: ReachedPoint = noCrashPoints,
): Promise<number> {
  const agents = await heldAgents(store.read);
  if (agents.length === 0) return 0;
  await store.transact("forget stopped turns", removeOrphans, "locked");
  let woken = 0;
  for (const { agent, revision } of agents) {
    if (await waits(agent, revision)) continue;
    for (let part = AT_ONCE; part === AT_ONCE; woken += part) {
      part = await wakeSome(store, agent);
      if (part > 0) reached("turns.woken");
    }
  }
  return woken;
}

async function wakeSome(store: Store, agent: string): Promise<number> {
  const held = await heldTurnsOf(store.read, agent, AT_ONCE);
  if (held.length === 0) return 0;
  await store.transact(
    "wake turns",
    async (tx) => {
      // The work first, as whoever holds a turn does it: in the other order the two could wait for each other.
      for (const { workId, runId } of held) if (await store.queue.unpark(tx, workId)) await wakeRun(tx, runId);
      await removeHeldTurns(
        tx,
        held.map(({ workId }) => workId),
      );
    },
    "locked",
  );
  return held.length;
}

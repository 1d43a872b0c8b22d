import { forgetContext } from "../records/journal/contexts.ts";
import { readRunInput, requeueRun } from "../records/sessions/runs.ts";
import type { Store } from "../store/store.ts";
import { TURN_WORK, type TurnPayload } from "./work-kinds.ts";

/**
 * Takes the agent's running turns from whoever runs them: what they have said so far is void, and they begin again as the agent is now.
 * Their owners notice at the latest when they renew their claims, and can commit nothing before. Answers the runs.
 */
export async function restartTurns(store: Store, agent: string, by: string): Promise<string[]> {
  return store.transact(
    "restart turns",
    async (tx) => {
      const restarted: string[] = [];
      for (const item of await store.queue.running(tx, TURN_WORK)) {
        const { runId, causedBy } = item.payload as TurnPayload;
        const run = await readRunInput(tx, runId);
        if (run?.agent !== agent) continue;
        await store.queue.handBackIn(tx, [item]);
        await requeueRun(tx, runId);
        await forgetContext(tx, runId);
        await store.ledger.append(tx, { type: "turn.restarted", actor: by, subject: ["run", runId], causedBy, data: { agent } });
        restarted.push(runId);
      }
      return restarted;
    },
    "locked",
  );
}

import type { Approval, Verdict } from "../contract/approvals.ts";
import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { Answerer, Approvals } from "../records/access/approvals.ts";
import { type NewCall, noteCall } from "../records/journal/calls.ts";
import { type RunInput, readRunInput, waitRun, wakeRun } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { Claim } from "../store/work-queue.ts";
import { type AskParts, askOwnersIn, type FreshQuestion } from "./ask-owners.ts";
import { workOfRun } from "./work-of-run.ts";

/** How long a person has to answer. */
export const APPROVAL_MS = 60 * 60_000;
/** Whoever waits for tasks is woken by their end; this is for the case that nobody has done so. */
const LOOK_AGAIN_MS = 10 * 60_000;

/** A call that a person is to approve. `asked`: the approval that was asked for already. */
export interface AskedCall {
  readonly call: NewCall;
  /** What the approval is bound to, beside agent and tool. */
  readonly args: unknown;
  readonly asked: string | null;
}

interface WaitParts extends AskParts {
  readonly approvals: Approvals;
  readonly reached: ReachedPoint;
}

/** What a turn waits for. */
export interface WaitedFor {
  readonly asked: readonly AskedCall[];
  readonly tasks: readonly string[];
}

/**
 * The turn waits for a person or for tasks, holding nothing. It goes on when one was answered, when the time of the first is up, or when its
 * tasks are over; if that has happened since it looked, at once. Answers the approvals.
 */
export async function waitTurn(
  parts: WaitParts,
  claim: Claim,
  run: RunInput,
  { asked: calls, tasks }: WaitedFor,
  askedOf: string,
  causedBy: number,
): Promise<string[]> {
  const { store, approvals, reached } = parts;
  const ids = await store.transact(
    "wait",
    async (tx) => {
      // What others were asked about earlier ends earlier.
      const left = await approvals.leftMs(
        tx,
        calls.flatMap(({ asked }) => asked ?? []),
      );
      // Park refuses a stale owner, so that nobody is asked for it.
      await store.queue.park(tx, claim, Math.max(0, left ?? (calls.length > 0 ? APPROVAL_MS : LOOK_AGAIN_MS)));
      const waitedFor: string[] = [];
      const fresh: FreshQuestion[] = [];
      for (const { call, args, asked } of calls) {
        const question = { run: run.id, agent: run.agent, tool: call.tool, args, askedOf, expiresMs: APPROVAL_MS };
        const id = asked ?? (await approvals.askIn(tx, question));
        if (asked === null) {
          await noteCall(tx, call, "asked", id);
          fresh.push({ approval: id, tool: call.tool, args });
        }
        waitedFor.push(id);
      }
      await waitRun(tx, run.id);
      const data = { approvals: waitedFor, ...(tasks.length > 0 ? { tasks } : {}) };
      const [waited] = await store.ledger.append(tx, { type: "turn.waited", actor: run.agent, subject: ["run", run.id], causedBy, data });
      await askOwnersIn(parts, tx, run, fresh, waited as number);
      return waitedFor;
    },
    "locked",
  );
  reached(tasks.length > 0 ? "turn.parked" : "turn.waits");
  return ids;
}

/** A person's word, and the turn that waited for it goes on. */
export async function answerApprovalIn(
  store: Store,
  approvals: Approvals,
  tx: Tx,
  by: Answerer,
  idPrefix: string,
  verdict: Verdict,
): Promise<Approval> {
  const runId = await approvals.runOf(tx, idPrefix);
  const run = runId === null ? undefined : await readRunInput(tx, runId);
  // The work first, as the turn does it that spends the approval: in the other order the two could wait for each other.
  const work = run && (await workOfRun(store, tx, run));
  if (run && work && (await store.queue.unpark(tx, work.id))) await wakeRun(tx, run.id);
  return approvals.answerIn(tx, by, idPrefix, verdict);
}

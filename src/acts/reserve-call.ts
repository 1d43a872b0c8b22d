import { basename } from "node:path";
import type { Model, ModelRequest } from "../kernel/model.ts";
import type { Revision } from "../records/agents/revision.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import { type Budgets, isLimited } from "../records/usage/budgets.ts";
import { estimateOf } from "../records/usage/estimate.ts";
import type { Budget } from "../records/usage/limits.ts";
import type { Store } from "../store/store.ts";
import type { Claim } from "../store/work-queue.ts";

export interface ReserveParts {
  readonly store: Store;
  readonly budgets: Budgets;
}

/** Whether anything limits what this run may spend. Where nothing does, no call of it is reserved, and it is settled by recording it. */
export function isBudgeted(run: RunInput, revision: Revision): boolean {
  return isLimited(
    revision.agents.get(run.agent)?.budget,
    run.rootAgent === undefined ? undefined : revision.agents.get(run.rootAgent)?.budget,
  );
}

/**
 * Reserves what asking a model may come to, before it is asked. Answers the request as it may be made: no longer an answer than was reserved for.
 * Throws `budget.exceeded`, with an event that says so, or `budget.unpriced`.
 */
export async function reserveCall(
  { store, budgets }: ReserveParts,
  claim: Claim,
  run: RunInput,
  revision: Revision,
  step: number,
  model: Model,
  request: ModelRequest,
  causedBy: number,
): Promise<ModelRequest> {
  if (!isBudgeted(run, revision)) return request;
  const estimate = estimateOf(model, request);
  const reserved = await store.transact(
    "reserve call",
    async (tx) => {
      // A turn that was taken over reserves nothing any more.
      await store.queue.guard(tx, claim);
      const answer = await budgets.reserveIn(tx, {
        run: run.id,
        agent: run.agent,
        step,
        estimate,
        budgetOf: (agent) => revision.agents.get(agent)?.budget ?? {},
        written: (agent, key) => writtenAt(revision, agent, key),
      });
      if ("refused" in answer) {
        const { code, message, details } = answer.refused;
        const data = { step, code, message, ...details };
        await store.ledger.append(tx, { type: "budget.refused", actor: run.agent, subject: ["run", run.id], causedBy, data });
      }
      return answer;
    },
    "locked",
  );
  if ("refused" in reserved) throw reserved.refused;
  return { ...request, settings: { ...request.settings, maxOutputTokens: reserved.maxOutputTokens } };
}

/** `agents.coder.budget.usd_per_day, guildhall.yaml:12`. */
function writtenAt({ settings }: Revision, agent: string, key: keyof Budget): string {
  const own = ["agents", agent, "budget", key];
  const path = settings.isWritten(own) ? own : ["budget", key];
  const origin = settings.originOf(path);
  return settings.configFile === null || origin === null
    ? path.join(".")
    : `${path.join(".")}, ${basename(settings.configFile)}:${origin.line}`;
}

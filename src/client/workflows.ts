import {
  type NewWorkflowRun,
  type RerunPlan,
  rerunPlan,
  startedWorkflow,
  WORKFLOW_LIVE,
  type WorkflowFile,
  type WorkflowRun,
  type WorkflowRunFilter,
  type WorkflowRunList,
  workflowFiles,
  workflowRun,
  workflowRunList,
} from "../contract/workflows.ts";
import type { ApiClient } from "./api-client.ts";

export type WorkflowVerb = "cancel" | "pause" | "resume";

/** Runs of workflows that the token's identity may see. An id may be the beginning of one. */
export class WorkflowsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** With a key it can be sent again: it runs once. */
  async start(run: NewWorkflowRun, key?: string): Promise<string> {
    const asked = key === undefined ? run : { ...run, idempotency_key: key };
    return (await this.#api.post(startedWorkflow, "/api/workflows/runs", asked)).id;
  }

  read(id: string): Promise<WorkflowRun> {
    return this.#api.get(workflowRun, pathOf(id));
  }

  list(filter: WorkflowRunFilter = {}): Promise<WorkflowRunList> {
    return this.#api.get(workflowRunList, "/api/workflows/runs", filter);
  }

  async files(): Promise<WorkflowFile[]> {
    return (await this.#api.get(workflowFiles, "/api/workflows")).workflows;
  }

  change(id: string, verb: WorkflowVerb): Promise<WorkflowRun> {
    return this.#api.post(workflowRun, `${pathOf(id)}/${verb}`, {});
  }

  review(id: string, step: string, verdict: "approve" | "reject", note?: string): Promise<WorkflowRun> {
    return this.#api.post(workflowRun, `${pathOf(id)}/approve`, { step, verdict, ...(note === undefined ? {} : { note }) });
  }

  rerun(id: string, from: readonly string[], dryRun: boolean): Promise<RerunPlan> {
    return this.#api.post(rerunPlan, `${pathOf(id)}/rerun`, { from, dry_run: dryRun });
  }

  /**
   * The run now and after each change, until it is over or the signal aborts. A connection that breaks is opened again; where nobody answers for
   * long, that is thrown.
   */
  async *follow(id: string, signal: AbortSignal, patienceMs?: number): AsyncGenerator<WorkflowRun, void, void> {
    let run: WorkflowRun | undefined;
    for await (const { event, data } of this.#api.watch(`${pathOf(id)}/live`, null, signal, patienceMs)) {
      if (event === "run" || event === "done") run = WORKFLOW_LIVE[event].parse(JSON.parse(data));
      else if (event === "change" && run) run = changed(run, WORKFLOW_LIVE.change.parse(JSON.parse(data)));
      else continue;
      yield run;
      if (event === "done") return;
    }
  }
}

type Change = Pick<WorkflowRun, "status" | "paused" | "usage" | "steps">;

/** Steps that came to be meanwhile, items of a `foreach`, follow those that were there. */
function changed(run: WorkflowRun, { steps, ...head }: Change): WorkflowRun {
  const next = new Map(run.steps.map((step) => [step.id, step]));
  for (const step of steps) next.set(step.id, step);
  return { ...run, ...head, steps: [...next.values()] };
}

function pathOf(id: string): string {
  return `/api/workflows/runs/${encodeURIComponent(id)}`;
}

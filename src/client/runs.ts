import { type RunContext, runContext } from "../contract/run-context.ts";
import { type OpenRuns, openRuns, type RunFilter, type RunSteps, runSteps } from "../contract/runs.ts";
import { type Run, run } from "../contract/wire.ts";
import type { ApiClient } from "./api-client.ts";

/** Turns that the token's identity may see. An id may be the beginning of one. */
export class RunsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  open(filter: RunFilter = {}): Promise<OpenRuns> {
    return this.#api.get(openRuns, "/api/runs", filter);
  }

  read(id: string): Promise<Run> {
    return this.#api.get(run, `/api/runs/${encodeURIComponent(id)}`);
  }

  steps(id: string): Promise<RunSteps> {
    return this.#api.get(runSteps, `/api/runs/${encodeURIComponent(id)}/steps`);
  }

  /** What the model was told before one of its answers; the last one unless given. */
  context(id: string, step?: number): Promise<RunContext> {
    return this.#api.get(runContext, `/api/runs/${encodeURIComponent(id)}/context`, { step });
  }
}

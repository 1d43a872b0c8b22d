import { ClientError } from "../client/client-error.ts";
import type { WorkflowsClient } from "../client/workflows.ts";
import type { WorkflowRun } from "../contract/workflows.ts";
import { askOnTerminal } from "./ask-on-terminal.ts";
import { harmless, paint, say } from "./terminal.ts";
import type { Progress } from "./workflow-progress.ts";

const YES = /^\s*(y|yes)\s*$/i;
const NO = /^\s*(n|no)\s*$/i;

/** Puts the steps that wait for a person before the one at the keyboard, one after another, each once. */
export class Reviews {
  readonly #workflows: WorkflowsClient;
  readonly #progress: Progress;
  readonly #known = new Set<string>();
  readonly #open = new Map<string, AbortController>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(workflows: WorkflowsClient, progress: Progress) {
    this.#workflows = workflows;
    this.#progress = progress;
  }

  see(run: WorkflowRun): void {
    for (const { id, status } of run.steps) {
      // Somebody else was quicker, or the run was cancelled.
      if (status !== "review") this.#open.get(id)?.abort();
      else if (!this.#known.has(id)) {
        this.#known.add(id);
        const over = new AbortController();
        this.#open.set(id, over);
        this.#last = this.#last.then(() => this.#ask(run.id, id, over.signal)).catch((error: unknown) => say(harmless(String(error))));
      }
    }
  }

  close(): void {
    for (const each of this.#open.values()) each.abort();
  }

  async #ask(run: string, step: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#progress.pause();
    try {
      const question = paint(process.stderr).yellow(`Shall ${harmless(step)} go on? (y: approve, n: reject, Enter: decide later) `);
      const answer = await askOnTerminal(question, signal);
      const verdict = answer === null ? null : YES.test(answer) ? "approve" : NO.test(answer) ? "reject" : null;
      if (verdict !== null) await this.#workflows.review(run, step, verdict).catch(unlessDecided);
      else if (!signal.aborted) say(`(it waits for \`guildhall workflow approve ${run} ${step}\`, with --reject for no)`);
    } finally {
      this.#progress.goOn();
    }
  }
}

function unlessDecided(error: unknown): void {
  if (!(error instanceof ClientError) || error.code !== "workflow.not_waiting") throw error;
  say(`(${error.message})`);
}

import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEvent } from "../../contract/events.ts";
import { isWorkflowOver, type RunStepView, type WorkflowRun } from "../../contract/workflows.ts";
import { readOpenCalls } from "../../records/journal/open-calls.ts";
import { usageOfTasks } from "../../records/usage/usage.ts";
import type { Store } from "../../store/store.ts";
import type { Send } from "./route.ts";

/** Whoever watches sees a change within this, and the database is asked no more often. */
const CALM_MS = 100;
/** Looked at again also when nothing was heard: the call of a turn that was not known yet may have been missed. */
const AGAIN_MS = 1_000;

/** With what each step does now, and what its turns came to: from rows, so that it is told whichever node runs them. */
export async function withStepsAtWork(store: Store, run: WorkflowRun): Promise<WorkflowRun> {
  const running = run.steps.flatMap(({ status, run: turn }) => (status === "running" && turn !== null ? [turn] : []));
  const [usages, calls] = await Promise.all([
    usageOfTasks(
      store.read,
      run.steps.flatMap(({ task }) => task ?? []),
    ),
    readOpenCalls(store.read, running),
  ]);
  const steps = run.steps.map((step): RunStepView => {
    const usage = step.task === null ? undefined : usages.get(step.task);
    const open = calls.filter(({ runId }) => runId === step.run).map(({ runId: _run, ...call }) => call);
    return { ...step, ...(usage ? { usage } : {}), ...(step.status === "running" ? { calls: open } : {}) };
  });
  return { ...run, steps };
}

/** The run now, then what changes, and at last the run that is over. */
export async function streamWorkflow(store: Store, read: () => Promise<WorkflowRun>, send: Send, signal: AbortSignal): Promise<void> {
  const from = await store.ledger.horizon();
  let seen = await read();
  await send({ event: isWorkflowOver(seen.status) ? "done" : "run", data: seen });
  const ended = new AbortController();
  const stop = AbortSignal.any([signal, ended.signal]);
  const heard = new Heard();
  const concerned = (): Set<string> => new Set([seen.id, ...seen.steps.flatMap(({ task, run }) => [task ?? [], run ?? []].flat())]);
  let watched = concerned();
  const listening = (async () => {
    for await (const event of store.follow(from, stop)) if (isAbout(event, watched)) heard.ring();
  })();
  // Whoever only waits here is told of it by the next look.
  listening.catch(() => {});
  try {
    while (!isWorkflowOver(seen.status) && !signal.aborted) {
      await heard.wait(AGAIN_MS, stop);
      if (signal.aborted) return;
      const next = await read();
      if (isWorkflowOver(next.status)) return await send({ event: "done", data: next });
      const change = changeOf(seen, next);
      seen = next;
      watched = concerned();
      if (change) await send({ event: "change", data: change });
      await sleep(CALM_MS, undefined, { signal: stop }).catch(() => {});
    }
  } finally {
    ended.abort();
    await listening.catch(() => {});
  }
}

function changeOf(before: WorkflowRun, { status, paused, usage, steps }: WorkflowRun): object | null {
  const known = new Map(before.steps.map((step) => [step.id, JSON.stringify(step)]));
  const changed = steps.filter((step) => known.get(step.id) !== JSON.stringify(step));
  const same = changed.length === 0 && status === before.status && paused === before.paused;
  return same ? null : { status, paused, usage, steps: changed };
}

function isAbout({ subject }: LedgerEvent, watched: ReadonlySet<string>): boolean {
  return subject[1] !== undefined && watched.has(subject[1]);
}

/** Rung at any time; whoever waits hears it once. */
class Heard {
  #rung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      const waiting = new AbortController();
      const rung = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await Promise.race([rung, sleep(ms, undefined, { signal: AbortSignal.any([signal, waiting.signal]) }).catch(() => {})]);
      waiting.abort();
      this.#wake = undefined;
    }
    this.#rung = false;
  }
}

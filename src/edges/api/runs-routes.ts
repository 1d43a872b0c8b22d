import { openRuns, type RunCall, type RunStep, runQuery, runSteps } from "../../contract/runs.ts";
import { isOver } from "../../contract/wire.ts";
import type { Approvals } from "../../records/access/approvals.ts";
import type { CallRecord } from "../../records/journal/calls.ts";
import { readOpenCalls } from "../../records/journal/open-calls.ts";
import { labelsOfRuns } from "../../records/journal/run-labels.ts";
import { readSteps, type Step } from "../../records/journal/steps.ts";
import { readAsked, readOpenRuns } from "../../records/sessions/open-runs.ts";
import { taskOfRun } from "../../records/tasks/task-of-run.ts";
import { countOpenBelow } from "../../records/tasks/task-rows.ts";
import { usageFromRoot, usageOfRun } from "../../records/usage/usage.ts";
import type { Store } from "../../store/store.ts";
import { OVERSEERS, type Route, route } from "./route.ts";
import { visibleRun, withUsage } from "./visible-run.ts";

/** What turns do now, and what they have done. An agent sees its own. */
export function runsRoutes(store: Store, approvals: Approvals): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/runs",
      summary: "Runs that are not over: who does what now, and what it took so far",
      allow: [...OVERSEERS, "agent"],
      query: runQuery,
      answers: { 200: openRuns },
      handle: async ({ caller, query }) => {
        const agent = caller.kind === "agent" ? caller.name : query.agent;
        const { runs, total } = await readOpenRuns(store.read, agent, query.limit);
        const [calls, usages, below, tasks] = await Promise.all([
          readOpenCalls(
            store.read,
            runs.map(({ id }) => id),
          ),
          Promise.all(runs.map(({ id }) => usageOfRun(store.read, id))),
          Promise.all(runs.map(({ id }) => usageFromRoot(store.read, id))),
          Promise.all(runs.map(({ id }) => countOpenBelow(store.read, id))),
        ]);
        const listed = runs.map((run, index) => ({
          ...run,
          usage: usages[index] ?? null,
          usageBelow: below[index] ?? null,
          tasks: tasks[index] as number,
          calls: calls.filter(({ runId }) => runId === run.id).map(({ runId: _run, ...call }) => call),
        }));
        return { status: 200, body: { runs: listed, total } };
      },
    }),
    route({
      method: "GET",
      path: "/api/runs/:id/steps",
      summary: "What a turn has done, one thing after another: answers, calls and their results, questions to a person",
      allow: [...OVERSEERS, "agent"],
      answers: { 200: runSteps },
      handle: async ({ caller, params }) => {
        const run = await withUsage(store, await visibleRun(store, caller, params.id));
        const [task, asked, steps, labels] = await Promise.all([
          taskOfRun(store.read, run.id),
          readAsked(store.read, run.id),
          readSteps(store.read, run.id),
          labelsOfRuns(store.read, [run.id]),
        ]);
        const calls = steps.flatMap((step) => (step.kind === "response" ? step.calls : []));
        const questions = await approvals.these(calls.flatMap((call) => call.approval ?? []));
        const over = isOver(run.status);
        return { status: 200, body: { run, task, ...asked, labels, steps: steps.map((step) => told(step, over)), approvals: questions } };
      },
    }),
  ];
}

function told(step: Step, over: boolean): RunStep {
  const { at, labels } = step;
  const place = { step: step.step, at, labels: [...labels] };
  if (step.kind === "steered") return { ...place, kind: "steered", said: step.said.map(({ from, text, run }) => ({ from, text, run })) };
  if (step.kind === "compacted") {
    const { summary, before } = step.compaction;
    return { ...place, kind: "compacted", summary, before };
  }
  const { model, text, usage, cost, cut = false } = step.response;
  const calls = step.response.calls.map((call, index): RunCall => {
    const record = step.calls.find((each) => each.place === index);
    // What has no record when all is over was for whoever asked.
    return record
      ? toldCall(record)
      : { ...NOT_MADE, state: over ? "brought" : "none", place: index, id: call.id, tool: call.tool, args: call.args };
  });
  return { ...place, kind: "response", model, text, calls, usage, cost, cut };
}

const NOT_MADE = { result: null, labels: [], approval: null, startedAt: null, endedAt: null };

function toldCall({ place, callId, tool, args, state, result, labels, approval, startedAt, endedAt }: CallRecord): RunCall {
  const shown = result && { text: result.text, failed: result.failed, images: result.images?.length ?? 0 };
  return { place, id: callId, tool, args, state, result: shown, labels: [...labels], approval, startedAt, endedAt };
}

import { z } from "zod";
import { labelsOfAskerIn } from "../../acts/tasks/ask-for-task.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import { cancelWorkflowIn, pauseWorkflowIn, resumeWorkflowIn } from "../../acts/workflows/change-workflow.ts";
import { rerunWorkflowIn } from "../../acts/workflows/rerun-workflow.ts";
import { reviewStepIn } from "../../acts/workflows/review-step.ts";
import { startWorkflowIn } from "../../acts/workflows/start-workflow.ts";
import { agentOfStep } from "../../acts/workflows/step-grant.ts";
import {
  newWorkflowRun,
  rerunPlan,
  rerunRequest,
  reviewVerdict,
  startedWorkflow,
  WORKFLOW_LIVE,
  type WorkflowRun,
  workflowFiles,
  workflowRun,
  workflowRunList,
  workflowRunQuery,
} from "../../contract/workflows.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import { WaitingRoom } from "../../records/sessions/waiting.ts";
import { workflowRunsBeginning } from "../../records/workflows/find-workflow-run.ts";
import { listWorkflowRuns, readWorkflowRun } from "../../records/workflows/read-workflow-run.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { OPERATORS, OVERSEERS, type Route, route, stream } from "./route.ts";
import { streamWorkflow, withStepsAtWork } from "./workflow-live.ts";
import { refuseMissingInput, WorkflowFiles, type WorkflowStarter, workflowStarter } from "./workflow-to-start.ts";

export interface WorkflowRouteParts {
  readonly tasks: TaskParts;
  readonly running: RunningTurns;
  /** Where the files of workflows are. */
  readonly home: string;
  readonly reached: ReachedPoint;
}

/** A workflow may be as large as a file of one, and its input as much again. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** A whole id, or the beginning of one. */
const RUN_ID = /^[0-9a-z]{4,20}$/;
const WHOLE = 20;
const STARTERS = [...OPERATORS, "agent"] as const;
const SEERS = [...OVERSEERS, "agent"] as const;

/** An agent sees what it has started itself; whatever needs a person's word is an operator's. */
export function workflowsRoutes(parts: WorkflowRouteParts): Route[] {
  const files = new WorkflowFiles(parts.home, parts.tasks.agents);
  return [...startRoutes(parts, files, workflowStarter(parts.tasks.agents, files)), ...seeRoutes(parts), ...changeRoutes(parts)];
}

function startRoutes({ tasks, reached }: WorkflowRouteParts, files: WorkflowFiles, toStart: WorkflowStarter): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/workflows",
      summary: "Workflows in the home's folder, by the names under which they can be run",
      allow: OVERSEERS,
      answers: { 200: workflowFiles },
      handle: async () => ({ status: 200, body: { workflows: await files.list() } }),
    }),
    route({
      method: "POST",
      path: "/api/workflows/runs",
      summary: "Run a workflow: one that is sent, or by the name of its file; an agent's run has no more rights than the agent",
      allow: STARTERS,
      body: newWorkflowRun,
      maxBodyBytes: MAX_BODY_BYTES,
      answers: { 202: startedWorkflow },
      handle: async ({ caller, body, transact }) => {
        const start = await toStart(caller, body.workflow);
        refuseMissingInput(start.definition, body.input);
        // Loads what conditions need before anybody is kept waiting.
        await tasks.workflows.compile(start.definition);
        const started = await transact("start workflow", async (tx) => {
          await enterWaitingIn(tasks, tx, start);
          // What an agent has read from outside goes with what it starts.
          const labels = await labelsOfAskerIn(tasks, tx, caller);
          const id = await startWorkflowIn(tasks, tx, { ...start, input: body.input, from: caller.name, labels });
          return { status: 202 as const, body: { id } };
        });
        reached("workflow.started");
        return started;
      },
    }),
  ];
}

function seeRoutes({ tasks: { store } }: WorkflowRouteParts): Route[] {
  const read = async (id: string): Promise<WorkflowRun> => withStepsAtWork(store, await known(store.read, id));
  return [
    route({
      method: "GET",
      path: "/api/workflows/runs",
      summary: "Runs of workflows, the newest first; an agent sees its own",
      allow: SEERS,
      query: workflowRunQuery,
      answers: { 200: workflowRunList },
      handle: async ({ caller, query }) => ({
        status: 200,
        body: await listWorkflowRuns(store.read, { ...query, from: ownerFor(caller) ?? undefined }),
      }),
    }),
    route({
      method: "GET",
      path: "/api/workflows/runs/:id",
      summary: "One run with its steps, what each does now, and what came of it; by its id or the beginning of it",
      allow: SEERS,
      answers: { 200: workflowRun },
      handle: async ({ caller, params }) => ({ status: 200, body: await read(await visibleId(store.read, caller, params.id)) }),
    }),
    stream({
      path: "/api/workflows/runs/:id/live",
      summary: "One run as it happens: all of it, then the steps that change, and at last the run that is over",
      allow: SEERS,
      events: WORKFLOW_LIVE,
      open: async ({ caller, params }) => {
        const id = await visibleId(store.read, caller, params.id);
        return (send, signal) => streamWorkflow(store, () => read(id), send, signal);
      },
    }),
  ];
}

function changeRoutes({ tasks, running }: WorkflowRouteParts): Route[] {
  const { store } = tasks;
  const answer = async (tx: Tx, id: string) => ({ status: 200 as const, body: await known(tx, id) });
  return [
    route({
      method: "POST",
      path: "/api/workflows/runs/:id/cancel",
      summary: "End a run and everything that it does; an agent may end its own",
      allow: STARTERS,
      body: z.strictObject({}).optional(),
      answers: { 200: workflowRun },
      handle: async ({ caller, params, transact }) => {
        const id = await visibleId(store.read, caller, params.id);
        let stopped: readonly string[] = [];
        const done = await transact("cancel workflow", async (tx) => {
          stopped = await cancelWorkflowIn(tasks, tx, id, caller.name);
          return answer(tx, id);
        });
        for (const turn of stopped) running.stop(turn);
        return done;
      },
    }),
    ...(["pause", "resume"] as const).map((verb) =>
      route({
        method: "POST",
        path: `/api/workflows/runs/:id/${verb}` as "/api/workflows/runs/:id/pause",
        summary:
          verb === "pause" ? "Nothing new begins; what runs may finish" : "A paused run goes on; of one that failed, what was not done",
        allow: OPERATORS,
        body: z.strictObject({}).optional(),
        answers: { 200: workflowRun },
        handle: async ({ caller, params, transact }) => {
          const id = await visibleId(store.read, caller, params.id);
          const change = verb === "pause" ? pauseWorkflowIn : resumeWorkflowIn;
          return transact(`${verb} workflow`, async (tx) => {
            await change(tasks, tx, id, caller.name);
            return answer(tx, id);
          });
        },
      }),
    ),
    route({
      method: "POST",
      path: "/api/workflows/runs/:id/approve",
      summary: "A person's word about a step that waits for it: it goes on, or it fails",
      allow: OPERATORS,
      body: reviewVerdict,
      answers: { 200: workflowRun },
      handle: async ({ caller, params, body: { step, verdict, note = null }, transact }) => {
        const workflow = await visibleId(store.read, caller, params.id);
        return transact("review step", async (tx) => {
          await reviewStepIn(tasks, tx, { workflow, step, verdict, note, by: caller.name });
          return answer(tx, workflow);
        });
      },
    }),
    route({
      method: "POST",
      path: "/api/workflows/runs/:id/rerun",
      summary: "A new run that does some steps again, with all that rest on them, and takes over the others; dry, only what that would be",
      allow: OPERATORS,
      body: rerunRequest,
      answers: { 200: rerunPlan, 202: rerunPlan },
      handle: async ({ caller, params, body, transact }) => {
        const id = await visibleId(store.read, caller, params.id);
        return transact("rerun workflow", async (tx) => {
          const plan = await rerunWorkflowIn(tasks, tx, { id, from: body.from, dryRun: body.dry_run, by: caller.name });
          return { status: body.dry_run ? 200 : 202, body: plan };
        });
      },
    }),
  ];
}

/** A step that begins is a turn that waits, like any other that somebody outside asks for. */
async function enterWaitingIn({ agents: { current } }: TaskParts, tx: Tx, start: Awaited<ReturnType<WorkflowStarter>>): Promise<void> {
  const asked = new Set(start.definition.steps.map((step) => agentOfStep(start, step, current)));
  for (const agent of asked) if (agent !== undefined) await new WaitingRoom().enterIn(tx, agent, current.settings.config.limits);
}

/** Whose runs alone somebody may see; null: all. */
function ownerFor(caller: Caller): string | null {
  return caller.kind === "agent" ? caller.name : null;
}

/** What somebody may not see is not there, and makes nothing ambiguous. */
async function visibleId(reads: Reads, caller: Caller, id: string): Promise<string> {
  const [only, another] = RUN_ID.test(id) ? await workflowRunsBeginning(reads, id, ownerFor(caller)) : [];
  if (another !== undefined && id.length < WHOLE)
    throw new Failure("request.not_found", `several runs of workflows begin with "${id}"`, { hint: "Write more of the id." });
  if (only === undefined) throw new Failure("request.not_found", `there is no run "${id}" of a workflow`);
  return only;
}

async function known(reads: Reads, id: string): Promise<WorkflowRun> {
  const run = await readWorkflowRun(reads, id);
  if (!run) throw new Failure("request.not_found", `there is no run "${id}" of a workflow`);
  return run;
}

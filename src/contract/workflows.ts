import { z } from "zod";
import { agentId, modelName } from "./config.ts";
import { entryKey, keyContract, poolName } from "./pools.ts";
import { duration, text } from "./text.ts";
import { toolRules } from "./tools.ts";
import { usage } from "./usage.ts";

export const MAX_STEPS = 1_000;
/** How many items a `foreach` may have. */
export const MAX_ITEMS = 1_000;
export const MAX_STALE_RERUNS = 3;
/** How much of what a step reads it is shown before it begins, of one value and of all of them, in characters. */
export const SHOWN_OF_ONE_READ = 8_000;
export const SHOWN_OF_ALL_READS = 32_000;

export const STALE_RULES = ["rerun", "rebase", "warn", "fail"] as const;
export type StaleRule = (typeof STALE_RULES)[number];

export const stepId = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, "a step's id is a letter, then up to 63 letters, digits, _ and -");

const retry = z.strictObject({
  /** In all, the first one included. */
  attempts: z.int().min(1).max(20),
  backoff: z.enum(["exponential", "fixed", "none"]).default("exponential"),
  delay: duration.default(1_000),
});

const keys = z.array(entryKey).max(200).default([]);

/** One step, as it is written. */
export const workflowStep = z.strictObject({
  id: stepId,
  /** Absent: a one-off child of whoever runs the workflow, else the default agent. */
  agent: agentId.optional(),
  goal: text(100_000),
  needs: z.array(stepId).max(MAX_STEPS).default([]),
  reads: keys,
  writes: keys,
  /** CEL over `input`, `outputs` and `steps`; false: the step is skipped. */
  when: z.string().min(1).max(10_000).optional(),
  /** A key that holds a list: the step runs once for each item. */
  foreach: entryKey.optional(),
  max_parallel: z.int().min(1).max(MAX_ITEMS).optional(),
  retry: retry.optional(),
  timeout: duration.optional(),
  review: z.literal("human").optional(),
  on_stale: z.enum(STALE_RULES).optional(),
  /** Narrows what the agent may call in this step. */
  tools: toolRules.optional(),
  model: modelName.optional(),
});
export type WorkflowStep = z.output<typeof workflowStep>;

export const workflow = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "a workflow's name is 1 to 64 letters, digits, dots, _ and -"),
  description: z.string().max(10_000).optional(),
  /** False: steps have no shared memory, and pass nothing on but that they are done. */
  shared_context: z.boolean().default(true),
  on_stale: z.enum(STALE_RULES).default("rerun"),
  keys: z.record(entryKey, keyContract).default({}),
  steps: z.array(workflowStep).min(1).max(MAX_STEPS),
  outputs: z.array(entryKey).max(200).default([]),
  /** A pool that outlives the run, instead of one of its own. */
  pool: poolName.optional(),
  /** A template: two runs for which it comes to the same are one. */
  idempotency_key: z.string().min(1).max(255).optional(),
});
export type Workflow = z.output<typeof workflow>;

export const STEP_STATES = ["waiting", "ready", "running", "review", "completed", "failed", "skipped", "cancelled"] as const;
export type StepState = (typeof STEP_STATES)[number];
export const WORKFLOW_STATES = ["running", "waiting", "completed", "failed", "cancelled"] as const;
export type WorkflowState = (typeof WORKFLOW_STATES)[number];

/** A step in one of these will not change any more. */
export function isStepOver(state: StepState): boolean {
  return state === "completed" || state === "failed" || state === "skipped" || state === "cancelled";
}

export function isWorkflowOver(state: WorkflowState): boolean {
  return state === "completed" || state === "failed" || state === "cancelled";
}

const error = z.object({ code: z.string(), message: z.string() }).nullable();

export const runStepView = z.object({
  /** Of one item of a `foreach`: `<id>[<index>]`. */
  id: z.string(),
  agent: z.string().nullable(),
  status: z.enum(STEP_STATES),
  attempts: z.number(),
  startedAt: z.number().nullable(),
  endedAt: z.number().nullable(),
  error,
  /** Its task, and the newest of its runs. */
  task: z.string().nullable(),
  run: z.string().nullable(),
  needs: z.array(z.string()),
  /** What it finished on that had changed meanwhile, under `on_stale: warn`. */
  stale: z.array(z.object({ key: z.string(), read: z.number(), current: z.number().nullable() })).optional(),
  /** Taken over from the run that this one goes back to. */
  reused: z.boolean().optional(),
  /** The calls of its newest turn that run now or wait for a person; empty: it thinks. Of a step that runs. */
  calls: z
    .array(z.object({ tool: z.string(), args: z.string(), state: z.enum(["asked", "intended", "waiting"]), since: z.number() }))
    .optional(),
  /** What its turns came to so far, those of tasks below it left out. Absent: no model was asked. */
  usage: usage.optional(),
});
export type RunStepView = z.output<typeof runStepView>;

/** Tokens that went through the shared memory, and what the same run would have cost through a parent that reads and retypes everything. */
export const relay = z.object({
  /** Read by steps from the shared memory. */
  throughMemory: z.number(),
  /** The same results read and written again by a parent, for every step that needs them. */
  throughParent: z.number(),
  /** Part of `throughParent` that was not spent. */
  saved: z.number(),
  /** What `throughParent` is made of: read by the parent, written by it once more, and read by the steps. */
  parent: z.object({ read: z.number(), written: z.number(), handed: z.number() }).optional(),
});
export type Relay = z.output<typeof relay>;

export const workflowRun = z.object({
  id: z.string(),
  name: z.string(),
  status: z.enum(WORKFLOW_STATES),
  steps: z.array(runStepView),
  /** By key. */
  outputs: z.record(z.string(), z.unknown()),
  usage: usage.nullable(),
  relay: relay.nullable(),
  error,
  input: z.record(z.string(), z.unknown()),
  pool: z.string().nullable(),
  from: z.string(),
  paused: z.boolean(),
  /** The run whose finished steps this one has taken over, and the step it began anew from. */
  rerunOf: z.object({ id: z.string(), from: z.array(z.string()) }).nullable(),
  createdAt: z.number(),
  endedAt: z.number().nullable(),
});
export type WorkflowRun = z.output<typeof workflowRun>;

export const workflowRunHead = workflowRun
  .pick({ id: true, name: true, status: true, from: true, paused: true, createdAt: true, endedAt: true })
  .extend({
    /** How many steps there are, and how many of them are over. */
    steps: z.object({ all: z.number(), over: z.number() }),
  });
export type WorkflowRunHead = z.output<typeof workflowRunHead>;
/** `before`: the `next` of the page before. */
export const workflowRunQuery = z.strictObject({
  status: z.enum(WORKFLOW_STATES).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  before: z.string().max(100).optional(),
});
export type WorkflowRunFilter = z.input<typeof workflowRunQuery>;
export const workflowRunList = z.object({ runs: z.array(workflowRunHead), next: z.string().nullable() });
export type WorkflowRunList = z.output<typeof workflowRunList>;

/** `workflow`: the name of a file in `<home>/workflows/`, or the workflow itself. */
export const newWorkflowRun = z.strictObject({
  workflow: z.union([z.string().min(1).max(200), z.record(z.string(), z.unknown())]),
  input: z.record(z.string().max(200), z.unknown()).default({}),
});
export type NewWorkflowRun = z.input<typeof newWorkflowRun>;
export const startedWorkflow = z.object({ id: z.string() });

/** A file in `<home>/workflows/`. `problem`: why it cannot be run. */
export const workflowFile = z.object({
  name: z.string(),
  file: z.string(),
  description: z.string().nullable(),
  steps: z.number(),
  problem: z.string().nullable(),
});
export type WorkflowFile = z.output<typeof workflowFile>;
export const workflowFiles = z.object({ workflows: z.array(workflowFile) });

/** What is told of a run as it happens: all of it first, then the steps that have changed, and at last the run that is over. */
export const WORKFLOW_LIVE = {
  run: workflowRun,
  change: workflowRun.pick({ status: true, paused: true, usage: true, steps: true }),
  done: workflowRun,
} as const;

export const reviewVerdict = z.strictObject({
  step: z.string().min(1).max(100),
  verdict: z.enum(["approve", "reject"]).default("approve"),
  note: text(2_000).optional(),
});

/** `from`: steps that run again, with all that rest on them. `dry_run`: only tells. `retracted`: the steps that retracted entries went into. */
export const rerunRequest = z.strictObject({
  from: z.array(z.string().min(1).max(100)).min(1).max(MAX_STEPS),
  dry_run: z.boolean().default(false),
});

export const rerunPlan = z.object({
  /** Of the new run; null: nothing was started. */
  id: z.string().nullable(),
  reused: z.array(z.string()),
  again: z.array(z.string()),
  /** Calls that changed the world outside and would be made again. */
  effects: z.array(z.object({ step: z.string(), tool: z.string(), effect: z.enum(["keyed", "unsafe"]), args: z.string() })),
  /** What the steps that run again came to the last time. */
  estimate: usage,
});
export type RerunPlan = z.output<typeof rerunPlan>;

/** What is wrong with a workflow, and where. */
export const workflowProblem = z.object({
  severity: z.enum(["error", "warning"]),
  code: z.string(),
  path: z.array(z.union([z.string(), z.number()])),
  line: z.number().nullable(),
  message: z.string(),
  fix: z.string().nullable(),
});
export type WorkflowProblem = z.output<typeof workflowProblem>;

import type { PoolDefinition } from "../../contract/pools.ts";
import type { Workflow } from "../../contract/workflows.ts";
import type { CompiledWorkflow } from "../../deciders/planning/compile.ts";
import { renderTemplate } from "../../deciders/planning/templates.ts";
import { withLists } from "../../deciders/planning/with-lists.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import { canonicalJson, sha256 } from "../../kernel/canonical-json.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import { addTask } from "../../records/tasks/task-rows.ts";
import { addWorkflowRun, findByIdempotency, holdWorkflow, type WorkflowStanding } from "../../records/workflows/workflow-run-rows.ts";
import { addSteps } from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { advanceIn } from "./advance.ts";
import { settleStandingIn } from "./end-workflow.ts";
import { type GoingWorkflow, tell } from "./going-workflow.ts";
import { agentOfStep } from "./step-grant.ts";

/** The turn whose call starts a workflow. */
export interface WorkflowParent {
  /** The task that it is a turn of; null: of a conversation. */
  readonly task: string | null;
  readonly run: string;
  /** Of the workflow: one below that of the turn. */
  readonly depth: number;
  readonly maxDepth: number;
  /** The agents from the root down to the one that calls. */
  readonly chain: readonly string[];
  readonly root: string;
  /** Its row in the work queue, where it waits for the end. */
  readonly waiter: number | null;
}

export interface WorkflowToStart {
  readonly definition: Workflow;
  readonly input: Readonly<Record<string, unknown>>;
  /** Who starts it: a bare name. */
  readonly from: string;
  /** What no step may go beyond; null: the rights of its agent. */
  readonly granted: Grant | null;
  /** Whose one-off children do the steps that name no agent; null: the default agent does. */
  readonly callerAgent: string | null;
  readonly parent?: WorkflowParent | undefined;
  /** Where no turn's call starts it: what is known to stand above it all the same. */
  readonly above?: Pick<WorkflowParent, "depth" | "maxDepth" | "chain"> | undefined;
  /** What whoever starts it has seen: every step begins with it. */
  readonly labels?: readonly Label[];
  /** The same key by the same one is the same run. */
  readonly idempotency?: string | undefined;
  /** The event that this follows from. */
  readonly causedBy?: number | null;
}

/** A run that goes back to another: which one, and the steps it begins anew from. */
export interface GoesBack {
  readonly id: string;
  readonly from: readonly string[];
}

/** What a column for it can hold. */
const DEEPEST = 2_147_483_647;
/** It stands in an index, whose entries one of the databases keeps below a third of a page. */
const LONGEST_KEY = 300;

/**
 * Starts a run: its task, its pool, its steps, and the turns of those that may begin. Answers its id; that of the first, where one by this key was
 * asked for before. Whoever has no transaction open calls `parts.workflows.compile` first: it may have something to load.
 */
export async function startWorkflowIn(parts: TaskParts, tx: Tx, workflow: WorkflowToStart): Promise<string> {
  const compiled = await parts.workflows.compile(workflow.definition);
  refuseAgents(parts, workflow, compiled);
  const opened = await openRunIn(parts, tx, workflow, null);
  if (!opened.isNew) return opened.id;
  const going = await beginIn(parts, tx, opened.id, workflow);
  await advanceIn(parts, tx, going, compiled.first);
  await settleStandingIn(parts, tx, going);
  return opened.id;
}

/** The rows of a run that has not begun. `isNew` false: there is one by the same key. */
export async function openRunIn(
  parts: TaskParts,
  tx: Tx,
  workflow: WorkflowToStart,
  goesBack: GoesBack | null,
): Promise<{ readonly id: string; readonly isNew: boolean }> {
  const { input, from, parent, labels = [] } = workflow;
  const definition = withLists(workflow.definition);
  const id = parts.newId();
  // Whoever goes back wants another run of the same, on purpose.
  const idempotency = goesBack === null ? idempotencyOf(workflow) : null;
  const { depth, maxDepth, chain } = aboveOf(workflow);
  const lineage = {
    root: parent?.root ?? id,
    depth,
    maxDepth,
    chain,
    ...(labels.length > 0 ? { labels: [...labels] } : {}),
  };
  const added = await addWorkflowRun(tx, {
    id,
    definition,
    input,
    pool: definition.shared_context ? (definition.pool ?? `run:${id}`) : null,
    from,
    callerAgent: workflow.callerAgent,
    granted: workflow.granted,
    lineage,
    rerunOf: goesBack?.id ?? null,
    rerunFrom: goesBack?.from ?? [],
    openSteps: definition.steps.length,
    idempotency,
  });
  if (!added) return { id: await sameRun(tx, idempotency as Named), isNew: false };
  await addTask(tx, {
    id,
    kind: "workflow",
    agent: null,
    from,
    goal: definition.description ?? `the workflow ${definition.name}`,
    parent: parent?.task ?? null,
    parentRun: parent?.run ?? null,
    root: lineage.root,
    depth: lineage.depth,
    maxDepth: Math.min(lineage.maxDepth, DEEPEST),
    chain: lineage.chain,
    spec: labels.length > 0 ? { labels } : {},
    workflow: id,
    waiter: parent?.waiter ?? null,
  });
  if (definition.shared_context && definition.pool === undefined) await parts.pools.createForRunIn(tx, from, id, poolOf(definition));
  await addSteps(
    tx,
    id,
    definition.steps.map(({ id: step }) => ({ step, ofStep: step, state: "waiting" })),
  );
  return { id, isNew: true };
}

function aboveOf({ parent, above }: WorkflowToStart): Pick<WorkflowParent, "depth" | "maxDepth" | "chain"> {
  return parent ?? above ?? { depth: 0, maxDepth: DEEPEST, chain: [] };
}

/** From here on it goes by itself. */
export async function beginIn(
  parts: TaskParts,
  tx: Tx,
  id: string,
  { from, parent, definition, causedBy = null }: Pick<WorkflowToStart, "from" | "parent" | "definition" | "causedBy">,
  told: object = {},
): Promise<GoingWorkflow> {
  const known = await parts.workflows.of(tx, id);
  const standing = (await holdWorkflow(parts.store, tx, id)) as WorkflowStanding;
  const going: GoingWorkflow = { known, standing, by: from, causedBy };
  const data = { name: definition.name, steps: definition.steps.length, parent: parent?.task ?? null, run: parent?.run ?? null, ...told };
  going.causedBy = await tell(parts, tx, going, "workflow.started", data);
  return going;
}

/** Who may come in at all is told by the pool's name; the lists say that everybody of the run may. */
function poolOf({ keys }: Workflow): PoolDefinition {
  return { readers: ["*"], writers: ["*"], keys };
}

interface Named {
  readonly key: string;
  readonly hash: string;
}

function idempotencyOf({ definition, input, from, idempotency }: WorkflowToStart): Named | null {
  const own = definition.idempotency_key === undefined ? undefined : renderTemplate(definition.idempotency_key, { input }, LONGEST_KEY);
  // A key that the workflow itself makes is another than one that was sent along.
  const key = idempotency !== undefined ? [from, "sent", idempotency] : own !== undefined ? [from, definition.name, own] : null;
  return key && { key: JSON.stringify(key), hash: sha256(canonicalJson({ definition, input })) };
}

async function sameRun(tx: Tx, { key, hash }: Named): Promise<string> {
  const known = await findByIdempotency(tx, key);
  if (!known) throw new Failure("internal.bug", "a run was not added, and there is none by its key");
  if (known.hash !== hash)
    throw new Failure("request.key_reused", `another workflow, or another input, was started with this key: ${known.id}`, {
      details: { id: known.id },
    });
  return known.id;
}

/** Before anything runs: a step whose agent the caller may not ask, or which stands above it already. */
function refuseAgents({ agents }: TaskParts, workflow: WorkflowToStart, compiled: CompiledWorkflow): void {
  const { current } = agents;
  const { callerAgent, granted } = workflow;
  const { chain } = aboveOf(workflow);
  for (const { step } of compiled.steps.values()) {
    const agent = agentOfStep(workflow, step, current);
    if (agent === undefined || !current.agents.has(agent))
      throw new Failure(
        "agent.unknown",
        agent === undefined
          ? `the step ${step.id} names no agent, and there is no default one`
          : `the step ${step.id}: there is no agent "${agent}"`,
      );
    if (agent === callerAgent) continue;
    if (granted !== null && current.policy.rightsOn(granted.agent, agent) === null)
      throw new Failure("task.not_delegate", `the step ${step.id}: ${granted.agent} may not delegate to ${agent}`);
    if (chain.includes(agent))
      throw new Failure("task.cycle", `the step ${step.id}: ${agent} stands above this task already: ${[...chain, agent].join(" → ")}`);
  }
}

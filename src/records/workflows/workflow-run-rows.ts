import type { Workflow, WorkflowState } from "../../contract/workflows.ts";
import { type Grant, readGrant } from "../../deciders/policy/grant.ts";
import type { Label } from "../../kernel/label.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";

/** What tasks of its steps inherit. */
export interface WorkflowLineage {
  /** The message or task that it all goes back to. */
  readonly root: string;
  readonly depth: number;
  readonly maxDepth: number;
  readonly chain: readonly string[];
  /** What whoever started it had seen. */
  readonly labels?: readonly Label[];
}

/** What a run was started with. Never changes. */
export interface WorkflowFacts {
  readonly id: string;
  readonly definition: Workflow;
  readonly input: Readonly<Record<string, unknown>>;
  /** Null: its steps share no memory. */
  readonly pool: string | null;
  readonly from: string;
  /** Whose one-off children do the steps that name no agent; null: the default agent does. */
  readonly callerAgent: string | null;
  /** What no step may go beyond; null: the rights of its agent. */
  readonly granted: Grant | null;
  readonly lineage: WorkflowLineage;
  readonly rerunOf: string | null;
}

/**
 * How far it is.
 *
 *   running ⇄ waiting (nothing is ready or running: a person is to review something, or it is paused)
 *   running → completed | failed, when no step is open | cancelled
 *   failed, cancelled → running, when a person resumes it
 */
export interface WorkflowStanding {
  readonly id: string;
  readonly status: WorkflowState;
  readonly paused: boolean;
  readonly openSteps: number;
  /** Of the open ones, those that are ready or running. */
  readonly activeSteps: number;
  readonly failedSteps: number;
}

export interface WorkflowEnd {
  readonly status: "completed" | "failed" | "cancelled";
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export type NewWorkflowRow = WorkflowFacts & {
  readonly rerunFrom: readonly string[];
  readonly openSteps: number;
  /** By whom and what it was asked for; null: every one is another. */
  readonly idempotency: { readonly key: string; readonly hash: string } | null;
};

/** False: there is one by the same key. */
export async function addWorkflowRun(tx: Tx, run: NewWorkflowRow): Promise<boolean> {
  const added =
    await tx.run`insert into workflow_runs (id, name, status, pool, opened_by, paused, open_steps, active_steps, failed_steps, rerun_of, rerun_from,
      idempotency, request_hash, created_at)
    values (${run.id}, ${run.definition.name}, 'running', ${run.pool}, ${run.from}, 0, ${run.openSteps}, 0, 0, ${run.rerunOf},
      ${run.rerunOf === null ? null : JSON.stringify(run.rerunFrom)}, ${run.idempotency?.key ?? null}, ${run.idempotency?.hash ?? null}, now_ms())
    on conflict (idempotency) where idempotency is not null do nothing`;
  if (added === 0) return false;
  await tx.run`insert into workflow_facts (id, definition, input, caller_agent, granted, lineage)
    values (${run.id}, ${JSON.stringify(run.definition)}, ${JSON.stringify(run.input)}, ${run.callerAgent},
      ${run.granted && JSON.stringify(run.granted)}, ${JSON.stringify(run.lineage)})`;
  return true;
}

export async function findByIdempotency(
  reads: Reads,
  key: string,
): Promise<{ readonly id: string; readonly hash: string | null } | undefined> {
  return reads.get<{ id: string; hash: string | null }>`select id, request_hash as hash from workflow_runs where idempotency = ${key}`;
}

interface FactsRow {
  readonly definition: string;
  readonly input: string;
  readonly pool: string | null;
  readonly opened_by: string;
  readonly caller_agent: string | null;
  readonly granted: string | null;
  readonly lineage: string;
  readonly rerun_of: string | null;
}

export async function readWorkflowFacts(reads: Reads, id: string): Promise<WorkflowFacts | undefined> {
  const row = await reads.get<FactsRow>`select definition, input, pool, opened_by, caller_agent, granted, lineage, rerun_of
    from workflow_facts as f join workflow_runs as r on r.id = f.id where f.id = ${id}`;
  if (!row) return undefined;
  return {
    id,
    definition: JSON.parse(row.definition) as Workflow,
    input: JSON.parse(row.input) as Record<string, unknown>,
    pool: row.pool,
    from: row.opened_by,
    callerAgent: row.caller_agent,
    granted: row.granted === null ? null : readGrant(row.granted),
    lineage: JSON.parse(row.lineage) as WorkflowLineage,
    rerunOf: row.rerun_of,
  };
}

interface StandingRow {
  readonly status: WorkflowState;
  readonly paused: number;
  readonly open_steps: number;
  readonly active_steps: number;
  readonly failed_steps: number;
}

/** Whoever changes anything of a run holds it. */
export async function holdWorkflow(store: Store, tx: Tx, id: string): Promise<WorkflowStanding | undefined> {
  const row = await tx.get<StandingRow>`select status, paused, open_steps, active_steps, failed_steps from workflow_runs
    where id = ${id} ${store.dialect.forUpdate}`;
  return (
    row && {
      id,
      status: row.status,
      paused: row.paused === 1,
      openSteps: row.open_steps,
      activeSteps: row.active_steps,
      failedSteps: row.failed_steps,
    }
  );
}

export async function setStanding(tx: Tx, { id, status, paused, openSteps, activeSteps, failedSteps }: WorkflowStanding): Promise<void> {
  await tx.run`update workflow_runs set status = ${status}, paused = ${paused ? 1 : 0}, open_steps = ${openSteps}, active_steps = ${activeSteps},
    failed_steps = ${failedSteps} where id = ${id}`;
}

/** It is over. */
export async function endWorkflowRun(tx: Tx, { id, openSteps, failedSteps }: WorkflowStanding, end: WorkflowEnd): Promise<void> {
  await tx.run`update workflow_runs set status = ${end.status}, outputs = ${JSON.stringify(end.outputs)},
    error = ${end.error && JSON.stringify(end.error)}, open_steps = ${openSteps}, active_steps = 0, failed_steps = ${failedSteps}, ended_at = now_ms()
    where id = ${id}`;
}

/** A person wants it to go on. */
export async function reopenWorkflowRun(tx: Tx, { id, openSteps, activeSteps, failedSteps }: WorkflowStanding): Promise<void> {
  await tx.run`update workflow_runs set status = 'running', paused = 0, outputs = null, error = null, ended_at = null, open_steps = ${openSteps},
    active_steps = ${activeSteps}, failed_steps = ${failedSteps} where id = ${id}`;
}

/** Of these, runs that are over, with everything that is known of them. A task of the same id goes with each. */
export async function removeWorkflowRuns(tx: Tx, ids: readonly string[]): Promise<void> {
  const rows = await tx.all<{ id: string }>`delete from workflow_runs
    where id in ${list(ids)} and status in ('completed', 'failed', 'cancelled') returning id`;
  if (rows.length === 0) return;
  const removed = list(rows.map(({ id }) => id));
  await tx.run`delete from workflow_facts where id in ${removed}`;
  await tx.run`delete from workflow_steps where workflow_id in ${removed}`;
}

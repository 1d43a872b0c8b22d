import { TURN_WORK, type TurnPayload } from "../../src/acts/work-kinds.ts";
import { isStepOver, isWorkflowOver, type StepState, type Workflow, type WorkflowState } from "../../src/contract/workflows.ts";
import { countItems } from "../../src/deciders/planning/plan.ts";
import type { Reads } from "../../src/store/engine.ts";
import type { Store } from "../../src/store/store.ts";

interface RunRow {
  readonly id: string;
  readonly status: WorkflowState;
  readonly definition: string;
  readonly paused: number;
  readonly open: number;
  readonly active: number;
  readonly failed: number;
  readonly ended: number | null;
  readonly task_status: string;
  readonly task_ended: number | null;
  readonly pool_state: string | null;
}

interface StepRow {
  readonly workflow: string;
  readonly step: string;
  readonly of_step: string;
  readonly item_index: number | null;
  readonly items: string | null;
  readonly state: StepState;
  readonly task_id: string | null;
  readonly run_id: string | null;
  readonly error: string | null;
  readonly task_run: string | null;
  readonly task_work: number | null;
  readonly task_ended: number | null;
  readonly task_status: string | null;
}

/** What must hold of every workflow at every moment: what is counted, what is open, and that each thing has the rows it needs and no others. */
export async function lookOver(store: Store): Promise<void> {
  const found = await store.snapshot(disorderIn);
  if (found.length > 0) throw new Error(`not in order:\n${found.slice(0, 10).join("\n")}`);
}

async function disorderIn(reads: Reads): Promise<string[]> {
  const found: string[] = [];
  const runs = await reads.all<RunRow>`select w.id, w.status, f.definition, w.paused, w.open_steps as open, w.active_steps as active,
      w.failed_steps as failed, w.ended_at as ended, t.status as task_status, t.ended_at as task_ended, p.state as pool_state
    from workflow_runs w join workflow_facts f on f.id = w.id join tasks t on t.id = w.id left join pools p on p.name = w.pool order by w.id`;
  const steps =
    await reads.all<StepRow>`select s.workflow_id as workflow, s.step, s.of_step, s.item_index, s.items, s.state, s.task_id, s.run_id,
      s.error, t.run_id as task_run, t.work_id as task_work, t.ended_at as task_ended, t.status as task_status
    from workflow_steps s left join tasks t on t.id = s.task_id`;
  const work = await reads.all<{ id: number; payload: string }>`select id, payload from work where kind = ${TURN_WORK}`;
  const workOf = Map.groupBy(work, ({ payload }) => (JSON.parse(payload) as TurnPayload).runId);
  const byRun = Map.groupBy(steps, ({ workflow }) => workflow);
  for (const run of runs) {
    const own = byRun.get(run.id) ?? [];
    for (const problem of [...disorderOf(run, own), ...own.flatMap((step) => disorderOfStep(step, workOf))])
      found.push(`${run.id} ${problem}`);
  }
  return [...found, ...(await strays(reads))];
}

function disorderOf(run: RunRow, own: readonly StepRow[]): string[] {
  const found: string[] = [];
  const must = (holds: boolean, what: string) => holds || found.push(`${what}: ${JSON.stringify({ ...run, definition: 0 })} ${brief(own)}`);
  const whole = own.filter(({ item_index }) => item_index === null);
  const open = whole.filter(({ state }) => !isStepOver(state));
  const lost = whole.filter(({ state, error }) => state === "failed" || (state === "cancelled" && !isResting(error)));
  const over = isWorkflowOver(run.status);
  const { steps } = JSON.parse(run.definition) as Workflow;
  must(whole.length === steps.length, "every step has its row");
  must(run.open === open.length, "open steps are counted");
  must(run.active === whole.filter(({ state }) => state === "ready" || state === "running").length, "active steps are counted");
  if (run.status !== "cancelled") must(run.failed === lost.length, "failed steps are counted");
  must(over === (open.length === 0) && over === (run.ended !== null), "it is over when nothing is open");
  must(over === (run.task_ended !== null) && (!over || run.task_status === run.status), "its task ends with it");
  must(run.pool_state === (over ? "sealed" : "open"), "its pool is sealed with its end");
  if (run.status === "completed") must(lost.length === 0, "nothing failed in what is completed");
  if (over) return found;
  must(run.status === (run.active > 0 ? "running" : "waiting"), "what it does is told");
  must(run.active > 0 || run.paused === 1 || open.some(({ state }) => state === "review"), "it waits for somebody");
  if (run.paused === 1) return found;
  const states = new Map(whole.map(({ step, state }) => [step, state]));
  for (const { id, needs } of steps) {
    const isFree = needs.every((need) => ["completed", "skipped"].includes(states.get(need) as string));
    must(states.get(id) !== "waiting" || !isFree, `${id} may begin, and begins`);
    must(
      states.get(id) !== "waiting" || !needs.some((need) => ["failed", "cancelled"].includes(states.get(need) as string)),
      `${id} rests on what is lost`,
    );
  }
  return found;
}

function disorderOfStep(step: StepRow, workOf: ReadonlyMap<string, readonly { id: number }[]>): string[] {
  const found: string[] = [];
  const must = (holds: boolean, what: string) => holds || found.push(`${step.step}: ${what}: ${JSON.stringify(step)}`);
  if (step.items !== null) return found;
  if (step.state === "ready" || step.state === "running") {
    must(step.task_id !== null && step.task_ended === null, "its task is open");
    must(step.task_run === step.run_id, "its task has its newest turn");
    const rows = workOf.get(step.run_id as string) ?? [];
    must(rows.length === 1 && rows[0]?.id === step.task_work, `one row of work asks for its turn, not ${JSON.stringify(rows)}`);
  } else if (step.task_id !== null) {
    must(step.task_ended !== null, "its task is over");
    must((workOf.get(step.run_id as string) ?? []).length === 0, "nobody is to take its turn");
    must(step.state === step.task_status, "its task ended as it did");
  }
  return found;
}

/** Rows that nothing needs any more, and what was done more than once. */
async function strays(reads: Reads): Promise<string[]> {
  const found: string[] = [];
  const none = (rows: readonly object[], what: string) => rows.length > 0 && found.push(`${what}: ${JSON.stringify(rows.slice(0, 3))}`);
  none(
    await reads.all`select t.id, t.workflow_id, t.step from tasks t where t.kind = 'step' and t.ended_at is null
      and not exists (select 1 from workflow_steps s where s.task_id = t.id and s.state in ('ready', 'running'))`,
    "open tasks of no step",
  );
  none(
    await reads.all`select workflow_id, step, count(*) as done from tasks where kind = 'step' and status = 'completed'
      group by workflow_id, step having count(*) > 1`,
    "steps done twice",
  );
  none(
    await reads.all`select task_id, count(*) as open from runs where task_id is not null and status in ('queued', 'running', 'waiting')
      group by task_id having count(*) > 1`,
    "tasks with two turns",
  );
  none(
    await reads.all`select r.id, r.status from runs r join tasks t on t.id = r.task_id where r.status in ('queued', 'running', 'waiting')
      and t.ended_at is not null`,
    "turns of tasks that are over",
  );
  none(
    await reads.all`select a.id from approvals a join runs r on r.id = a.run_id where a.state = 'asked' and r.status not in ('waiting', 'running', 'queued')`,
    "questions for turns that are over",
  );
  none(
    await reads.all`select t.id, t.kind, p.id as above from tasks t join tasks p on p.id = t.parent_id
      where t.ended_at is null and p.ended_at is not null and t.waiter is not null`,
    "tasks below one that is over",
  );
  const foreach = await reads.all<{ workflow_id: string; step: string; items: string }>`select workflow_id, step, items from workflow_steps
    where items is not null and item_index is null and state = 'running'`;
  for (const { workflow_id, step, items } of foreach) {
    const rows = await reads.all<{
      state: StepState;
    }>`select state from workflow_steps where workflow_id = ${workflow_id} and of_step = ${step}
      and item_index is not null`;
    const counted = countItems(rows.map(({ state }) => state));
    const { version: _version, external: _external, ...told } = JSON.parse(items);
    const same = (Object.keys(counted) as (keyof typeof counted)[]).every((key) => counted[key] === told[key]);
    if (!same) found.push(`${workflow_id} ${step} counts its items as ${items}, and they are ${JSON.stringify(counted)}`);
  }
  return found;
}

function isResting(error: string | null): boolean {
  return error !== null && (JSON.parse(error) as { code: string; message: string }).message.includes("which it rests on");
}

function brief(own: readonly StepRow[]): string {
  return own.map(({ step, state }) => `${step}=${state}`).join(" ");
}

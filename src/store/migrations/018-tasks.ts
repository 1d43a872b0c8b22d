import type { Migration } from "./migration.ts";

/** Tasks, workflows and what starts by the clock (records/tasks, records/workflows, records/schedules). */
export const tasks: Migration = {
  version: 18,
  name: "tasks",
  statements: [
    // One row for everything that somebody is asked to do for somebody. `parent_id`: the task above it; `parent_run`: the turn whose call opened
    // it. `root_id`: the message, or the task, that it all goes back to. `chain`: JSON, the agents from there down to this one. `run_id` and
    // `work_id`: the newest of its turns. `waiter`: the work row of the turn that waits for it. `spec` is JSON; `result` and `error` too.
    {
      sqlite: `create table tasks (id text primary key, kind text not null, agent text, opened_by text not null, goal text not null,
        status text not null, result text, error text, parent_id text, parent_run text, root_id text not null, depth integer not null,
        max_depth integer not null, chain text not null, run_id text, work_id bigint, waiter bigint, spec text not null, workflow_id text,
        step text, deadline_at bigint, created_at bigint not null, ended_at bigint) without rowid`,
      postgres: `create table tasks (id text collate "C" primary key, kind text not null, agent text collate "C", opened_by text collate "C" not null,
        goal text not null, status text not null, result text, error text, parent_id text collate "C", parent_run text collate "C",
        root_id text collate "C" not null, depth integer not null, max_depth integer not null, chain text not null, run_id text collate "C",
        work_id bigint, waiter bigint, spec text not null, workflow_id text collate "C", step text, deadline_at bigint,
        created_at bigint not null, ended_at bigint)`,
    },
    "create index tasks_by_parent on tasks (parent_id, id) where parent_id is not null",
    "create index tasks_by_agent on tasks (agent, id)",
    "create index tasks_with_deadline on tasks (deadline_at) where deadline_at is not null and ended_at is null",
    { sqlite: "alter table runs add column task_id text", postgres: 'alter table runs add column task_id text collate "C"' },
    "create index runs_of_task on runs (task_id, id) where task_id is not null",
    // Tasks that a call waits for, JSON.
    "alter table tool_calls add column tasks text",

    // One run of a workflow; its task has the same id. `definition`, `input`, `outputs`, `error`, `granted` and `lineage` are JSON; `granted`: what
    // no step may go beyond; `lineage`: what tasks of its steps inherit. `open_steps`: those that are not over; of them `active_steps` are ready
    // or running; `failed_steps` failed, or were cancelled by themselves. `idempotency`: by whom and what it was asked for, where it was named;
    // `request_hash`: of what was asked for by that name.
    {
      sqlite: `create table workflow_runs (id text primary key, name text not null, status text not null, outputs text, error text,
        pool text, opened_by text not null, paused integer not null, open_steps integer not null, active_steps integer not null, failed_steps integer not null, rerun_of text,
        rerun_from text, idempotency text, request_hash text, created_at bigint not null, ended_at bigint) without rowid`,
      postgres: `create table workflow_runs (id text collate "C" primary key, name text not null, status text not null, outputs text, error text,
        pool text, opened_by text not null, paused integer not null, open_steps integer not null, active_steps integer not null, failed_steps integer not null,
        rerun_of text collate "C", rerun_from text, idempotency text collate "C", request_hash text, created_at bigint not null, ended_at bigint)`,
    },
    // What it was started with and never changes, apart: with every step the row above is written anew.
    {
      sqlite: `create table workflow_facts (id text primary key, definition text not null, input text not null, caller_agent text, granted text,
        lineage text not null) without rowid`,
      postgres: `create table workflow_facts (id text collate "C" primary key, definition text not null, input text not null, caller_agent text,
        granted text, lineage text not null)`,
    },
    "create index workflow_runs_by_opener on workflow_runs (opened_by, id)",
    "create unique index workflow_runs_by_key on workflow_runs (idempotency) where idempotency is not null",
    // One row per step, and per item of a `foreach`: `step` is then `<id>[<index>]`, `of_step` the id alone. `item`, `items`, `error`, `stale` and
    // `review` are JSON; `items`: of a `foreach`, how many of its items are in which state. What it answered stands in its task.
    {
      sqlite: `create table workflow_steps (workflow_id text not null, step text not null, of_step text not null, item_index integer, item text,
        items text, state text not null, agent text, task_id text, run_id text, attempts integer not null, stale_reruns integer not null,
        error text, stale text, review text, reused integer not null, ready_at bigint, started_at bigint, ended_at bigint,
        primary key (workflow_id, step)) without rowid`,
      postgres: `create table workflow_steps (workflow_id text collate "C" not null, step text collate "C" not null, of_step text collate "C" not null,
        item_index integer, item text, items text, state text not null, agent text, task_id text collate "C", run_id text collate "C",
        attempts integer not null, stale_reruns integer not null, error text, stale text, review text, reused integer not null, ready_at bigint,
        started_at bigint, ended_at bigint, primary key (workflow_id, step))`,
    },
    "create index workflow_items_to_start on workflow_steps (workflow_id, of_step, item_index) where item_index is not null and state = 'waiting'",
    // Of whoever was cancelled or retracted, what else has taken it over.
    "create index workflow_steps_reused on workflow_steps (run_id) where reused = 1",

    // `next_at`: when it is due, by the database's clock; null: never again, or paused. `owner`: who made it. `granted` is JSON.
    {
      sqlite: `create table schedules (id text primary key, agent text not null, name text not null, cron text not null, timezone text not null,
        goal text not null, catch_up text not null, owner text not null, granted text, paused integer not null, next_at bigint, last_at bigint,
        last_task text, created_at bigint not null, unique (agent, name)) without rowid`,
      postgres: `create table schedules (id text collate "C" primary key, agent text collate "C" not null, name text collate "C" not null,
        cron text not null, timezone text not null, goal text not null, catch_up text not null, owner text not null, granted text,
        paused integer not null, next_at bigint, last_at bigint, last_task text, created_at bigint not null, unique (agent, name))`,
    },
    "create index schedules_due on schedules (next_at) where next_at is not null",
  ],
};

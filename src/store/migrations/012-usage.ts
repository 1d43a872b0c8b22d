import type { Migration } from "./migration.ts";

/** What models were asked and what it cost (records/usage), and whose turn it is among those who wait (work queue). */
export const usage: Migration = {
  version: 12,
  name: "usage",
  statements: [
    // One row per step of a run that asked a model. `root_id`: the message of a person it goes back to, by which tasks are summed.
    // `cost` is in millionths of a US dollar; `unpriced`: calls whose price was not known, which `cost` leaves out.
    {
      sqlite: `create table model_calls (root_id text not null, run_id text not null, step integer not null, agent text not null,
        model text not null, calls integer not null, input_tokens bigint not null, output_tokens bigint not null, cached_tokens bigint not null,
        cost bigint not null, unpriced integer not null, at bigint not null, primary key (root_id, run_id, step)) without rowid`,
      postgres: `create table model_calls (root_id text collate "C" not null, run_id text collate "C" not null, step integer not null,
        agent text not null, model text not null, calls integer not null, input_tokens bigint not null, output_tokens bigint not null,
        cached_tokens bigint not null, cost bigint not null, unpriced integer not null, at bigint not null, primary key (root_id, run_id, step))`,
    },
    // The same by day (days since 1970, UTC, by the database's clock), so that a year is read at once.
    {
      sqlite: `create table usage_days (day integer not null, agent text not null, model text not null, calls bigint not null,
        input_tokens bigint not null, output_tokens bigint not null, cached_tokens bigint not null, cost bigint not null, unpriced bigint not null,
        primary key (agent, day, model)) without rowid`,
      postgres: `create table usage_days (day integer not null, agent text collate "C" not null, model text collate "C" not null,
        calls bigint not null, input_tokens bigint not null, output_tokens bigint not null, cached_tokens bigint not null, cost bigint not null,
        unpriced bigint not null, primary key (agent, day, model))`,
    },
    // What calls that run now may come to. Only where a limit applies.
    `create table budget_reservations (run_id text not null, step integer not null, root_id text not null, agent text not null,
      tokens bigint not null, cost bigint not null, at bigint not null, primary key (run_id, step))`,
    "create index budget_reservations_by_agent on budget_reservations (agent)",
    "create index budget_reservations_by_root on budget_reservations (root_id)",
    // One row to hold for each thing that is limited, so that two who reserve at once come one after the other.
    "create table budget_locks (scope text primary key, at bigint not null)",
    "create index budget_locks_by_time on budget_locks (at)",

    // Whose work it is; null: nobody's, and it goes before everybody's. `cost`: one through the weight. `vtime`: see store/fair-order.ts.
    { sqlite: "alter table work add column tenant text", postgres: 'alter table work add column tenant text collate "C"' },
    "alter table work add column cost double precision not null default 1",
    "alter table work add column vtime double precision not null default 0",
    "drop index work_ready",
    "create index work_in_order on work (priority desc, vtime, id) where state = 'ready'",
    "create index work_of_tenant on work (tenant, priority desc, vtime, id) where state = 'ready' and tenant is not null",
  ],
};

import type { Migration } from "./migration.ts";

/** What turns do, one thing after another, so that whoever takes one over knows where it stood (records/journal). */
export const journal: Migration = {
  version: 11,
  name: "journal",
  statements: [
    // `body` is JSON by `kind`: an answer of the model, words that came in between, a summary of what came before.
    `create table run_steps (run_id text not null, step integer not null, kind text not null, body text not null, labels text not null,
      at bigint not null, primary key (run_id, step))`,
    // `place`: of the call within its answer. `args` is canonical JSON, `result` JSON. `labels`: what the turn carries from it on.
    `create table tool_calls (run_id text not null, step integer not null, place integer not null, call_id text not null, tool text not null,
      args text not null, effect text not null, state text not null, result text, labels text not null, approval_id text,
      started_at bigint not null, ended_at bigint, primary key (run_id, step, place))`,
    "create index tool_calls_by_approval on tool_calls (approval_id) where approval_id is not null",
    // What the model is told before the conversation, as it was when the turn began; JSON.
    "create table run_contexts (run_id text primary key, body text not null)",
    // The message of a person that this goes back to; null: the run itself.
    "alter table runs add column root_id text",
    // A conversation that came with the message instead of a session's, as JSON.
    "alter table runs add column request text",
    // What the turn may call at most, as JSON; null: what its agent may.
    "alter table runs add column granted text",
    // The run whose turn has taken this message in.
    "alter table runs add column merged_into text",
    // Calls that whoever asked must answer himself, as JSON: the reply is them.
    "alter table runs add column reply_calls text",
  ],
};

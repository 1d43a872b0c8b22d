import type { Migration } from "./migration.ts";

/** The state of conversations, who they were handed over to, and what a person was asked (records/sessions, records/access). */
export const conversations: Migration = {
  version: 10,
  name: "conversations",
  statements: [
    // `model` replaces the agent's own for this session; `title` is the beginning of its first message.
    {
      sqlite: `create table sessions (session_key text primary key, agent text not null, epoch integer not null, model text, title text not null,
        messages bigint not null, created_at bigint not null, last_at bigint not null) without rowid`,
      postgres: `create table sessions (session_key text collate "C" primary key, agent text not null, epoch integer not null, model text,
        title text not null, messages bigint not null, created_at bigint not null, last_at bigint not null)`,
    },
    "create index sessions_by_time on sessions (last_at, session_key)",
    "create index sessions_by_agent on sessions (agent, last_at, session_key)",
    "alter table runs add column epoch integer not null default 1",
    "alter table transcript add column epoch integer not null default 1",
    // What was said before it could be searched is indexed little by little: 0 until then.
    "alter table transcript add column indexed integer not null default 0",
    "create index transcript_unindexed on transcript (session_key, position) where indexed = 0",
    `insert into sessions (session_key, agent, epoch, model, title, messages, created_at, last_at)
      select session_key, min(agent), 1, null,
        coalesce((select substr(said.body, 1, 80) from transcript as said where said.session_key = runs.session_key and said.position = 1), ''),
        count(*), min(created_at), max(coalesce(ended_at, created_at))
      from runs where session_key is not null and agent is not null group by session_key`,

    // By the session key that the rules of routing give.
    {
      sqlite: `create table handovers (conversation_key text primary key, agent text not null, by_whom text not null, at bigint not null) without rowid`,
      postgres: `create table handovers (conversation_key text collate "C" primary key, agent text not null, by_whom text not null, at bigint not null)`,
    },

    // `args` is canonical JSON and `hash` is of it; `used_at`: an approval is good for one call.
    {
      sqlite: `create table approvals (id text primary key, run_id text, agent text not null, tool text not null, args text not null, hash text not null,
        asked_of text not null, state text not null, asked_at bigint not null, expires_at bigint not null, answered_by text, answered_at bigint,
        used_at bigint) without rowid`,
      postgres: `create table approvals (id text collate "C" primary key, run_id text, agent text not null, tool text not null, args text not null,
        hash text not null, asked_of text not null, state text not null, asked_at bigint not null, expires_at bigint not null, answered_by text,
        answered_at bigint, used_at bigint)`,
    },
    "create index approvals_open on approvals (expires_at) where state in ('asked', 'approved') and used_at is null",
  ],
};

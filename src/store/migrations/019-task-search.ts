import type { Migration } from "./migration.ts";

/** Who may see a task, and what it is found by (records/tasks, store/marked-search.ts). */
export const taskSearch: Migration = {
  version: 19,
  name: "task-search",
  statements: [
    // Words that no text has, in front of which a search stops looking at what is not marked so (search-marks.ts).
    "alter table documents add column marks text not null default ''",
    // JSON: whoever opened it, does it, or did so with a task above it. Those below it take them over.
    "alter table tasks add column viewers text not null default '[]'",
    // The same by viewer: what one may see is one range of it, whatever else there is.
    {
      sqlite: "create table task_viewers (viewer text not null, task_id text not null, primary key (viewer, task_id)) without rowid",
      postgres: `create table task_viewers (viewer text collate "C" not null, task_id text collate "C" not null, primary key (viewer, task_id))`,
    },
    "create index tasks_open on tasks (id) where ended_at is null",
    "create index tasks_by_status on tasks (status, id) where ended_at is not null",
    // Whose it is, for how long it is kept: whoever does it, or has opened it where nobody does.
    "create index tasks_by_end on tasks (coalesce(agent, opened_by), ended_at) where ended_at is not null",
  ],
};

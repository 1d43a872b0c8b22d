import type { Migration } from "./migration.ts";

/** Files that people and agents send each other on chat platforms, and where what an agent does by the clock is told. */
export const files: Migration = {
  version: 24,
  name: "files",
  statements: [
    // Where an agent may speak: where it was spoken to. Only messages of channels have an origin.
    "create index runs_on_channels on runs (agent, id) where origin is not null",
    // Whoever sweeps must not read the bytes to find out how old they are.
    "create index blobs_by_age on blobs (touched_at, hash)",
    // The address of the conversation in which an agent made the job, JSON; null: nobody is told.
    "alter table schedules add column place text",
  ],
};

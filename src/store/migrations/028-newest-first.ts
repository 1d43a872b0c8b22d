import type { Migration } from "./migration.ts";

/**
 * Whoever searches a million documents on PostgreSQL is shown the newest of those that fit. By the word alone the index collects all of them,
 * however many; with the blocks of numbers beside it, it goes straight to those of the newest blocks (marked-documents.ts).
 */
export const newestFirst: Migration = {
  version: 28,
  name: "newest first",
  additive: true,
  statements: [
    {
      sqlite: null,
      // Small blocks are told from large ones by their sign. What was written last and is not yet in order is looked through by every search.
      postgres: `create index marked_documents_by_block on marked_documents using gin (terms, (array[(doc >> 11) * 4, (doc >> 14) * 4 + 1, (doc >> 17) * 4 + 2, (doc >> 20) * 4 + 3]))
        with (gin_pending_list_limit = 512)`,
    },
    { sqlite: null, postgres: "drop index marked_documents_by_terms" },
  ],
};

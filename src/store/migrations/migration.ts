/** One statement, the same on both databases or one for each (null: nothing to do there). */
export type MigrationStatement = string | { readonly sqlite: string | null; readonly postgres: string | null };

export interface Migration {
  readonly version: number;
  readonly name: string;
  /**
   * Programs of the version before can go on beside it, after each of its statements: they neither miss nor trip over anything. Absent: they
   * must be gone first. It is recorded with every statement, for programs that do not know this migration.
   */
  readonly additive?: true;
  readonly statements: readonly MigrationStatement[];
}

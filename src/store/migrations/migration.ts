/** One statement, the same on both databases or one for each (null: nothing to do there). */
export type MigrationStatement = string | { readonly sqlite: string | null; readonly postgres: string | null };

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly statements: readonly MigrationStatement[];
}

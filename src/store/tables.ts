import type { Engine, Reads } from "./engine.ts";

export interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  /** The columns of the primary key, in order. */
  readonly key: readonly string[];
}

interface ColumnRow {
  readonly table: string;
  readonly column: string;
  /** Place in the primary key, from 1; 0 outside it. */
  readonly key: number;
}

/** Columns that each database derives in its own way, and tables that say how this database was made and not what it holds. */
const DERIVED: Readonly<Record<string, readonly string[]>> = { documents: ["terms"], marked_documents: ["terms"] };
const OWN = ["migrations", "counters"];

/** Every table with portable content, asked of the database itself: a room that adds a table need not think of backups. */
export async function portableTables(engine: Engine, reads: Reads = engine.reads): Promise<Table[]> {
  const rows = engine.dialect.name === "sqlite" ? await sqliteColumns(reads) : await postgresColumns(reads);
  const tables = Map.groupBy(
    rows.filter((row) => !OWN.includes(row.table) && !DERIVED[row.table]?.includes(row.column)),
    (row) => row.table,
  );
  return [...tables].map(([name, columns]) => ({
    name,
    columns: columns.map((row) => row.column),
    key: columns
      .filter((row) => row.key > 0)
      .sort((a, b) => a.key - b.key)
      .map((row) => row.column),
  }));
}

function sqliteColumns(reads: Reads): Promise<ColumnRow[]> {
  return reads.all<ColumnRow>`
    select t.name as "table", c.name as "column", c.pk as "key" from pragma_table_list as t join pragma_table_info(t.name) as c
    where t.schema = 'main' and t.type = 'table' and t.name not like 'sqlite_%' order by t.name, c.cid`;
}

function postgresColumns(reads: Reads): Promise<ColumnRow[]> {
  return reads.all<ColumnRow>`
    select c.table_name as "table", c.column_name as "column", coalesce(k.ordinal_position, 0) as "key"
    from information_schema.columns as c
    left join information_schema.table_constraints as p
      on p.table_schema = c.table_schema and p.table_name = c.table_name and p.constraint_type = 'PRIMARY KEY'
    left join information_schema.key_column_usage as k
      on k.constraint_schema = p.constraint_schema and k.constraint_name = p.constraint_name and k.table_name = c.table_name and k.column_name = c.column_name
    where c.table_schema = current_schema() order by c.table_name, c.ordinal_position`;
}

import type { BackupReader, Cells } from "./backup.ts";
import type { Engine, Tx } from "./engine.ts";
import { indexedTerms } from "./search-terms.ts";
import { code, list, type SqlFragment, sql } from "./sql.ts";
import { portableTables, type Table } from "./tables.ts";
import { tsvectorOf } from "./tsvector.ts";

const PAGE = 200;

/** Loads a backup into an empty store. The caller makes the whole of it appear at once, or not at all. */
export async function load(engine: Engine, source: BackupReader): Promise<number> {
  const tables = new Map((await portableTables(engine)).map((table) => [table.name, table]));
  const stored = new Map(source.header.tables.map((table) => [table.name, table]));
  let page: { table: Table; cells: Cells }[] = [];
  let rows = 0;
  const flush = async (): Promise<void> => {
    const chunk = page;
    page = [];
    await engine.transact("load backup", async (tx) => {
      for (const { table, cells } of chunk) await insert(engine, tx, table, cells);
    });
  };
  for await (const { table: name, cells } of source.rows) {
    const table = stored.get(name);
    if (!table || !tables.has(name)) continue;
    page.push({ table, cells });
    rows++;
    if (page.length === PAGE) await flush();
  }
  await flush();
  await engine.transact("finish restore", (tx) => afterLoad(engine, tx, source.header.fence));
  return rows;
}

async function insert(engine: Engine, tx: Tx, table: Table, cells: Cells): Promise<void> {
  let columns = table.columns;
  let values: SqlFragment = list(cells);
  if (table.name === "documents" || table.name === "marked_documents") {
    const marks = table.name === "documents" ? "" : String(cells[columns.indexOf("marks")]);
    const terms = [...indexedTerms(String(cells[columns.indexOf("body")])), ...(marks === "" ? [] : marks.split(" "))];
    columns = [...columns, "terms"];
    values = engine.dialect.name === "sqlite" ? list([...cells, terms.join(" ")]) : list([...cells, tsvectorOf(terms)]);
  }
  const into = code(`"${table.name}" (${columns.map((column) => `"${column}"`).join(", ")})`);
  await tx.run`insert into ${into} values ${values}`;
}

/**
 * Fences, and the ids of work and of reads, must stay above all that were given out after the backup was made, which nobody knows: they jump
 * to the time in microseconds, which no counter reaches by counting. Owners of the past are gone, so their work is ready again.
 */
async function afterLoad(engine: Engine, tx: Tx, fence: number): Promise<void> {
  if (engine.dialect.name === "sqlite") {
    await tx.run`update counters set value = max(${fence}, now_ms() * 1000) where name = 'fence'`;
    await tx.run`delete from sqlite_sequence where name = 'work'`;
    await tx.run`insert into sqlite_sequence (name, seq) values ('work', cast(now_ms() * 1000 as integer))`;
    await tx.run`delete from sqlite_sequence where name = 'pool_reads'`;
    await tx.run`insert into sqlite_sequence (name, seq) values ('pool_reads', cast(now_ms() * 1000 as integer))`;
    await tx.run`insert into document_terms (document_terms) values ('rebuild')`;
    await tx.run`insert into marked_terms (marked_terms) values ('rebuild')`;
  } else {
    await tx.get`select setval('fences', greatest(cast(${fence} as bigint), now_ms() * 1000))`;
    await tx.get`select setval('ledger_seq', max(seq)) from ledger having max(seq) is not null`;
    await tx.get`select setval(pg_get_serial_sequence('work', 'id'), now_ms() * 1000)`;
    await tx.get`select setval(pg_get_serial_sequence('pool_reads', 'id'), now_ms() * 1000)`;
    await tx.get`select setval(pg_get_serial_sequence('documents', 'doc'), (select coalesce(max(doc), 0) + 1 from documents), false)`;
    await tx.get`select setval(pg_get_serial_sequence('marked_documents', 'doc'), (select coalesce(max(doc), 0) + 1 from marked_documents), false)`;
  }
  const jump = sql`(now_ms() * 1000)`;
  await tx.run`update work set fence = ${jump} where fence < ${jump}`;
  await tx.run`update work set state = 'ready', owner = null, lease_until = null where state = 'running'`;
  // Whoever held something then may have lost it since: nobody goes on under an old fence.
  await tx.run`delete from claims`;
  await tx.run`delete from claim_waiters`;
  await tx.run`update mail set state = 'pending', leased_by = null, due_at = expires_at where state = 'leased'`;
}

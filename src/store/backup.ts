import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { Failure } from "../kernel/failure.ts";
import type { Engine, Reads } from "./engine.ts";
import { type BoundValue, code, list, type SqlFragment, sql } from "./sql.ts";
import { portableTables, type Table } from "./tables.ts";

export interface BackupHeader {
  readonly guildhall: "backup";
  readonly schema: number;
  readonly at: number;
  readonly fence: number;
  readonly tables: readonly Table[];
}

export interface BackupSummary {
  readonly rows: number;
  readonly tables: number;
}

type Cell = BoundValue;
export type Cells = readonly Cell[];

/** Rows read at once; few of those that may be large. */
const pageOf = (table: Table): number => (table.columns.includes("bytes") ? 4 : 500);

/**
 * Writes one moment of the whole store to a file: gzipped lines of JSON, the same for both databases, so that a home can move from
 * SQLite to PostgreSQL and back. Writers go on meanwhile. The file appears under its name only when it is whole.
 */
export async function backup(engine: Engine, file: string): Promise<BackupSummary> {
  const partial = `${file}.partial`;
  let rows = 0;
  let tables = 0;
  try {
    await engine.snapshot(async (reads) => {
      async function* lines(): AsyncGenerator<string> {
        const header = await readHeader(engine, reads);
        tables = header.tables.length;
        yield `${JSON.stringify(header)}\n`;
        for (const table of header.tables) {
          for await (const row of rowsOf(reads, table)) {
            rows++;
            yield `${JSON.stringify([table.name, ...row.map(encodeCell)])}\n`;
          }
        }
        yield `${JSON.stringify({ end: rows })}\n`;
      }
      await pipeline(lines, createGzip({ level: 1 }), createWriteStream(partial, { mode: 0o600, flush: true }));
    });
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
  return { rows, tables };
}

async function readHeader(engine: Engine, reads: Reads): Promise<BackupHeader> {
  const clock = await reads.get<{ at: number }>`select now_ms() as at`;
  const fence =
    engine.dialect.name === "sqlite"
      ? await reads.get<{ fence: number }>`select value as fence from counters where name = 'fence'`
      : await reads.get<{ fence: number }>`select last_value as fence from fences`;
  // A newer program may have added to it: what is stored is as the database has it.
  const schema = await reads.get<{ version: number }>`select max(version) as version from migrations`;
  return {
    guildhall: "backup",
    schema: schema?.version as number,
    at: clock?.at as number,
    fence: fence?.fence as number,
    tables: await portableTables(engine, reads),
  };
}

/** Page by page along the primary key. */
async function* rowsOf(reads: Reads, table: Table): AsyncGenerator<Cells> {
  const columns = names(table.columns);
  const key = names(table.key);
  const from = code(`"${table.name}"`);
  const size = pageOf(table);
  let after = code("");
  while (true) {
    const page = await reads.all<Record<string, Cell>>`select ${columns} from ${from} ${after} order by ${key} limit ${size}`;
    for (const row of page) yield table.columns.map((column) => row[column] ?? null);
    const last = page.at(-1);
    if (!last || page.length < size) return;
    after = sql`where (${key}) > ${list(table.key.map((column) => last[column] ?? null))}`;
  }
}

function names(columns: readonly string[]): SqlFragment {
  return code(columns.map((column) => `"${column}"`).join(", "));
}

function encodeCell(value: Cell): unknown {
  return value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("base64") } : value;
}

function decodeCell(value: unknown): Cell {
  if (value !== null && typeof value === "object") return Buffer.from((value as { bytes: string }).bytes, "base64");
  return value as Cell;
}

/** Not node:readline: it also cuts at U+2028 and U+2029, which JSON leaves as they are. */
async function* linesOf(input: Readable): AsyncGenerator<string, undefined, void> {
  let pieces: string[] = [];
  for await (const chunk of input.setEncoding("utf8") as AsyncIterable<string>) {
    const [end, ...others] = chunk.split("\n") as [string, ...string[]];
    pieces.push(end);
    for (const begin of others) {
      yield pieces.join("");
      pieces = [begin];
    }
  }
  const last = pieces.join("");
  if (last !== "") yield last;
}

export interface BackupReader {
  readonly header: BackupHeader;
  readonly rows: AsyncIterable<{ readonly table: string; readonly cells: Cells }>;
}

/** Opens a backup and reads its header; a file that ends early is refused when its rows are read. */
export async function openBackup(file: string): Promise<BackupReader> {
  const unreadable = (why: string, cause?: unknown) => new Failure("backup.unreadable", `${file} is not a whole backup: ${why}`, { cause });
  const source = createReadStream(file);
  const unzipped = createGunzip();
  // Its error comes out of the last stream's iterator.
  pipeline(source, unzipped).catch(() => {});
  const lines = linesOf(unzipped);
  const next = async (): Promise<string | undefined> => {
    try {
      const { done, value } = await lines.next();
      return done ? undefined : value;
    } catch (error) {
      throw unreadable((error as Error).message, error);
    }
  };
  const parse = (line: string): unknown => {
    try {
      return JSON.parse(line);
    } catch (error) {
      throw unreadable("a line is not JSON", error);
    }
  };
  const header = parse((await next()) ?? "null") as BackupHeader | null;
  if (header?.guildhall !== "backup") throw unreadable("it has no header");
  async function* rows(): AsyncGenerator<{ table: string; cells: Cells }> {
    for (let count = 0; ; count++) {
      const line = await next();
      if (line === undefined) throw unreadable("it ends early");
      const row = parse(line);
      if (!Array.isArray(row)) {
        if ((row as { end?: unknown } | null)?.end !== count) throw unreadable("rows are missing");
        return;
      }
      const [table, ...cells] = row as [string, ...unknown[]];
      yield { table, cells: cells.map(decodeCell) };
    }
  }
  return { header, rows: rows() };
}

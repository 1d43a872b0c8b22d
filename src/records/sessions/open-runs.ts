import type { Reads } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";

const SHOWN_CHARACTERS = 200;

export interface RunThatIsOpen {
  readonly id: string;
  readonly agent: string;
  readonly sessionKey: string;
  readonly status: "queued" | "running" | "waiting";
  readonly input: string;
  readonly from: string;
  readonly createdAt: number;
  readonly startedAt: number | null;
}

interface Row {
  readonly id: string;
  readonly agent: string;
  readonly session_key: string;
  readonly status: RunThatIsOpen["status"];
  readonly input: string;
  readonly address: string;
  readonly created_at: number;
  readonly started_at: number | null;
}

/** Runs that are not over: those that run first, then in the order in which they came. */
export async function readOpenRuns(
  reads: Reads,
  agent: string | undefined,
  limit: number,
): Promise<{ readonly runs: RunThatIsOpen[]; readonly total: number }> {
  const wanted = sql`status in ('queued', 'running', 'waiting') ${agent === undefined ? sql`` : sql`and agent = ${agent}`}`;
  const rows = await reads.all<Row>`select id, agent, session_key, status, substr(input, 1, ${SHOWN_CHARACTERS}) as input, address,
    created_at, started_at from runs where ${wanted} order by case when status = 'queued' then 1 else 0 end, id limit ${limit}`;
  const counted = await reads.get<{ total: number }>`select count(*) as total from runs where ${wanted}`;
  return { runs: rows.map(openRunOf), total: counted?.total ?? 0 };
}

function openRunOf(row: Row): RunThatIsOpen {
  return {
    id: row.id,
    agent: row.agent,
    sessionKey: row.session_key,
    status: row.status,
    input: row.input,
    from: senderOf(row.address),
    createdAt: row.created_at,
    startedAt: row.started_at,
  };
}

/** The runs whose ids begin so: at most two, which is enough to know that there are several. */
export async function runsBeginning(reads: Reads, prefix: string): Promise<string[]> {
  const rows = await reads.all<{ id: string }>`select id from runs where id >= ${prefix} and id < ${`${prefix}~`} order by id limit 2`;
  return rows.map(({ id }) => id);
}

/** What was asked in a run, by whom, and when it was first taken up. */
export async function readAsked(
  reads: Reads,
  id: string,
): Promise<{ readonly input: string; readonly from: string; readonly startedAt: number | null }> {
  const row = await reads.get<Pick<Row, "input" | "address" | "started_at">>`select input, address, started_at from runs where id = ${id}`;
  return { input: row?.input ?? "", from: row ? senderOf(row.address) : "", startedAt: row?.started_at ?? null };
}

function senderOf(address: string): string {
  const { platform, peer } = JSON.parse(address) as { platform: string; peer: string };
  return `${platform}:${peer}`;
}

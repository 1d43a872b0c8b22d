import type { Dialect, Reads, Tx } from "../../store/engine.ts";
import { list, sql } from "../../store/sql.ts";
import { front } from "./receive-mail.ts";

/** Turns that mail may start of one agent within an hour: two that wake each other must not keep everybody's models busy. */
export const WAKES_PER_HOUR = 60;
/** Turns that mail may start and that go back to one message. */
export const WAKES_PER_ROOT = 50;
const HOUR_MS = 3_600_000;
/** A conversation between agents that rests for so long is over. */
const CHAIN_MS = 7 * 86_400_000;
const WAITING = 200;
const FRONT = 100;

/** What is known of an agent that mail may wake. */
export interface WakeState {
  readonly agent: string;
  /** A turn that mail has started and that has not opened its mail; it may be over all the same. */
  readonly run: string | null;
  /** How many more may be started now. */
  readonly left: number;
  readonly lastAt: number;
}

interface WakeRow {
  readonly agent: string;
  readonly run_id: string | null;
  readonly left: number;
  readonly last_at: number;
}

const COLUMNS = sql`agent, run_id, last_at,
  case when since > now_ms() - ${HOUR_MS} then ${WAKES_PER_HOUR} - wakes else ${WAKES_PER_HOUR} end as "left"`;

/** Holds these agents' rows until the transaction ends: whether one is woken is decided one after another. `agents` are sorted. */
export async function holdWakes(dialect: Dialect, tx: Tx, agents: readonly string[]): Promise<WakeState[]> {
  for (const agent of agents)
    await tx.run`insert into mail_wakes (agent, wakes, since, last_at) values (${agent}, 0, 0, 0) on conflict (agent) do nothing`;
  const rows = await tx.all<WakeRow>`select ${COLUMNS} from mail_wakes where agent in ${list(agents)} order by agent ${dialect.forUpdate}`;
  return rows.map(stateOf);
}

/** The same without a lock, for a look: those that were ever woken. */
export async function readWakes(reads: Reads, agents: readonly string[]): Promise<WakeState[]> {
  return (await reads.all<WakeRow>`select ${COLUMNS} from mail_wakes where agent in ${list(agents)}`).map(stateOf);
}

/** Whether nothing more may be started that goes back to this message. */
export async function isChainOver(reads: Reads, root: string): Promise<boolean> {
  return (await reads.get`select 1 from wake_chains where root = ${root} and wakes >= ${WAKES_PER_ROOT}`) !== undefined;
}

function stateOf(row: WakeRow): WakeState {
  return { agent: row.agent, run: row.run_id, left: Number(row.left), lastAt: row.last_at };
}

/** One more turn that goes back to this message; false: it was the last one. The agent's row is held. */
export async function noteWake(tx: Tx, agent: string, run: string, root: string): Promise<boolean> {
  const counted = await tx.run`insert into wake_chains (root, wakes, last_at) values (${root}, 1, now_ms())
    on conflict (root) do update set wakes = wake_chains.wakes + 1, last_at = now_ms() where wake_chains.wakes < ${WAKES_PER_ROOT}`;
  if (counted === 0) return false;
  await tx.run`update mail_wakes set run_id = ${run}, last_at = now_ms(),
      wakes = case when since > now_ms() - ${HOUR_MS} then wakes + 1 else 1 end,
      since = case when since > now_ms() - ${HOUR_MS} then since else now_ms() end where agent = ${agent}`;
  return true;
}

/** Whether mail has started this turn, and it has not opened its mail. */
export async function isWaking(reads: Reads, agent: string, run: string): Promise<boolean> {
  return (await reads.get`select 1 from mail_wakes where agent = ${agent} and run_id = ${run}`) !== undefined;
}

/** The turn opens its mail: what comes from now on needs another one. The mailboxes are locked. */
export async function endWake(tx: Tx, agent: string, run: string): Promise<void> {
  await tx.run`update mail_wakes set run_id = null where agent = ${agent} and run_id = ${run}`;
}

export interface WaitingWake {
  readonly id: string;
  readonly to: string;
  readonly from: string;
  readonly root: string | null;
}

/** For the pulse: whether there is mail that is to wake somebody. */
export const MAIL_THAT_WAKES = sql`exists (select 1 from mail where wake = 1 and state = 'pending')`;

/** Of each of these mailboxes the first mail that can be handed out and is to wake somebody. */
export async function waitingWakes(reads: Reads, among: readonly string[]): Promise<WaitingWake[]> {
  const boxes = await reads.all<{ box: string }>`select distinct box from mail
    where wake = 1 and state = 'pending' and box in ${list(among)} order by box limit ${WAITING}`;
  const found: WaitingWake[] = [];
  for (const { box } of boxes) {
    const row = await reads.get<{ id: string; sender: string; root_id: string | null }>`select id, sender, root_id from mail
      where wake = 1 and id in (${front([box], FRONT)}) order by seq limit 1`;
    if (row) found.push({ id: row.id, to: box, from: row.sender, root: row.root_id });
  }
  return found;
}

/** Whether nobody has taken it meanwhile. */
export async function stillWaits(reads: Reads, id: string): Promise<boolean> {
  return (await reads.get`select 1 from mail where id = ${id} and wake = 1 and state = 'pending'`) !== undefined;
}

export async function forgetChains(dialect: Dialect, tx: Tx, limit: number): Promise<void> {
  const old = sql`select root from wake_chains where last_at < now_ms() - ${CHAIN_MS} limit ${limit} ${dialect.skipLocked}`;
  await tx.run`delete from wake_chains where root ${dialect.amongFirst(old)}`;
}

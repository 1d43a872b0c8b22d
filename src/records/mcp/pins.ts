import type { Reads, Tx } from "../../store/engine.ts";
import type { SqlFragment } from "../../store/sql.ts";
import { code } from "../../store/sql.ts";
import type { ListedTool, ToolList } from "./tool-list.ts";

/** Whose server it is. The same name with two agents is two servers. */
export interface PinKey {
  readonly agent: string;
  readonly server: string;
}

export interface Pin {
  readonly hash: string;
  readonly tools: readonly ListedTool[];
  readonly pinnedAt: number;
  /** What a person was last asked, and how long ago by the database's clock. */
  readonly asked: { readonly hash: string; readonly id: string; readonly agoMs: number } | null;
}

interface PinRow {
  readonly hash: string;
  readonly tools: string;
  readonly pinned_at: number;
  readonly asked_hash: string | null;
  readonly asked_id: string | null;
  readonly asked_ago: number | null;
}

export function readPin(reads: Reads, key: PinKey): Promise<Pin | null> {
  return find(reads, key, code(""));
}

/** The same, held until the transaction ends. */
export function lockPin(tx: Tx, key: PinKey, forUpdate: SqlFragment): Promise<Pin | null> {
  return find(tx, key, forUpdate);
}

async function find(reads: Reads, { agent, server }: PinKey, locking: SqlFragment): Promise<Pin | null> {
  const row = await reads.get<PinRow>`select hash, tools, pinned_at, asked_hash, asked_id, now_ms() - asked_at as asked_ago
    from mcp_pins where agent = ${agent} and server = ${server} ${locking}`;
  if (!row) return null;
  const { asked_hash: hash, asked_id: id, asked_ago: agoMs } = row;
  const asked = hash === null || id === null ? null : { hash, id, agoMs: agoMs ?? 0 };
  return { hash: row.hash, tools: JSON.parse(row.tools) as ListedTool[], pinnedAt: row.pinned_at, asked };
}

/** False: another node was first. */
export async function addPin(tx: Tx, { agent, server }: PinKey, { hash, text }: ToolList): Promise<boolean> {
  const added = await tx.run`insert into mcp_pins (agent, server, hash, tools, pinned_at)
    values (${agent}, ${server}, ${hash}, ${text}, now_ms()) on conflict (agent, server) do nothing`;
  return added > 0;
}

export async function replacePin(tx: Tx, { agent, server }: PinKey, { hash, text }: ToolList): Promise<void> {
  await tx.run`update mcp_pins set hash = ${hash}, tools = ${text}, pinned_at = now_ms(), asked_hash = null, asked_id = null, asked_at = null
    where agent = ${agent} and server = ${server}`;
}

export async function noteQuestion(tx: Tx, { agent, server }: PinKey, hash: string, approval: string): Promise<void> {
  await tx.run`update mcp_pins set asked_hash = ${hash}, asked_id = ${approval}, asked_at = now_ms()
    where agent = ${agent} and server = ${server}`;
}

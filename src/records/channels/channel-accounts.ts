import { type ChannelState, DEFAULT_ACCOUNT } from "../../contract/channels.ts";
import type { Scope } from "../../kernel/scope.ts";
import type { Reads, Tx } from "../../store/engine.ts";

export interface AccountName {
  readonly platform: string;
  readonly account: string;
}

/** How an account is doing, as the node that holds it has said last. */
export interface AccountState {
  readonly state: ChannelState;
  readonly problem: string | null;
  /** What we are called there. */
  readonly name: string | null;
  readonly node: string | null;
}

interface StateRow {
  readonly platform: string;
  readonly account: string;
  readonly state: ChannelState;
  readonly problem: string | null;
  readonly name: string | null;
  readonly node: string | null;
  readonly since: number;
}

/** What the names of leases on accounts begin with. */
export const ACCOUNT_LEASES: Scope = ["channel"];

/** Whoever holds it is connected to the platform, and nobody else is. */
export function accountLease({ platform, account }: AccountName): Scope {
  return [...ACCOUNT_LEASES, platform, account];
}

/** As somebody is named who wrote to an account: `telegram:7`, or `telegram/work:7`. */
export function senderName({ platform, account, peer }: AccountName & { readonly peer: string }): string {
  return `${account === DEFAULT_ACCOUNT ? platform : `${platform}/${account}`}:${peer}`;
}

export async function readCursor(reads: Reads, { platform, account }: AccountName): Promise<unknown> {
  const row = await reads.get<{ cursor: string | null }>`select cursor from channel_accounts
    where platform = ${platform} and account = ${account}`;
  return row?.cursor ? JSON.parse(row.cursor) : null;
}

/** In the transaction of whatever came before it. */
export async function keepCursor(tx: Tx, { platform, account }: AccountName, cursor: unknown): Promise<void> {
  const written = JSON.stringify(cursor);
  await tx.run`insert into channel_accounts (platform, account, cursor, state, since) values (${platform}, ${account}, ${written}, 'connecting', now_ms())
    on conflict (platform, account) do update set cursor = ${written}`;
}

/** Nobody else has it until the transaction ends. */
export async function lockAccount(tx: Tx, { platform, account }: AccountName): Promise<void> {
  await tx.run`insert into channel_accounts (platform, account, state, since) values (${platform}, ${account}, 'connecting', now_ms())
    on conflict (platform, account) do update set account = excluded.account`;
}

export async function tellState(tx: Tx, { platform, account }: AccountName, now: AccountState): Promise<void> {
  const { state, problem, name, node } = now;
  await tx.run`insert into channel_accounts (platform, account, state, problem, name, node, since)
    values (${platform}, ${account}, ${state}, ${problem}, ${name}, ${node}, now_ms())
    on conflict (platform, account) do update set state = ${state}, problem = ${problem}, name = coalesce(${name}, channel_accounts.name),
      node = ${node}, since = now_ms()`;
}

export async function readStates(reads: Reads): Promise<StateRow[]> {
  return reads.all<StateRow>`select platform, account, state, problem, name, node, since from channel_accounts order by platform, account`;
}

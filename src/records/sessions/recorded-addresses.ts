import type { Address } from "../../deciders/routing/address.ts";
import type { Reads } from "../../store/engine.ts";

export interface RecordedAddress {
  readonly run: string;
  readonly at: number;
  readonly address: Address;
}

export interface RecordedAddresses {
  readonly found: readonly RecordedAddress[];
  /** From where to go on; null: there are no older ones. */
  readonly next: string | null;
}

/**
 * Of messages that the rules decided about, newest first; those whose sender named the agent, or whose conversation was handed over, are
 * none of theirs. Looks at `limit` messages and no more, so that it may find fewer.
 */
export async function readRecordedAddresses(reads: Reads, limit: number, before: string | null): Promise<RecordedAddresses> {
  // Inside a text of JSON every quote is escaped, so that nothing a stranger writes can look like this.
  const named = '%"tier":"named"%';
  const rows = await reads.all<{ id: string; created_at: number; address: string; named: number }>`select id, created_at, address,
      case when decision like ${named} then 1 else 0 end as named
    from runs where cast(${before} as text) is null or id < ${before} order by id desc limit ${limit}`;
  const ruled = rows.filter((row) => Number(row.named) === 0);
  return {
    found: ruled.map(({ id, created_at, address }) => ({ run: id, at: created_at, address: JSON.parse(address) })),
    next: rows.length < limit ? null : (rows.at(-1)?.id ?? null),
  };
}

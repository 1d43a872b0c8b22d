import type { Address } from "../../deciders/routing/address.ts";
import type { Reads } from "../../store/engine.ts";

export interface RecordedAddress {
  readonly run: string;
  readonly at: number;
  readonly address: Address;
}

/** Of messages that the rules decided about, newest first; those whose sender named the agent are none of theirs. */
export async function readRecordedAddresses(reads: Reads, limit: number, before: string | null): Promise<RecordedAddress[]> {
  // Inside a text of JSON every quote is escaped, so that nothing a stranger writes can look like this.
  const named = '%"tier":"named"%';
  const rows = await reads.all<{ id: string; created_at: number; address: string }>`select id, created_at, address from runs
    where (cast(${before} as text) is null or id < ${before}) and decision not like ${named} order by id desc limit ${limit}`;
  return rows.map(({ id, created_at, address }) => ({ run: id, at: created_at, address: JSON.parse(address) }));
}

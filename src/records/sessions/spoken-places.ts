import type { Address } from "../../deciders/routing/address.ts";
import type { Reads } from "../../store/engine.ts";

/** Messages that are looked at: whoever has not written since is asked for by the config. */
const NEWEST = 10_000;

/** Where people have spoken to this agent through channels, those who wrote last first. */
export async function readSpokenPlaces(reads: Reads, agent: string): Promise<Address[]> {
  const rows = await reads.all<{ address: string }>`select address, max(id) as newest
    from (select address, id from runs where agent = ${agent} and origin is not null order by id desc limit ${NEWEST}) as spoken
    group by address order by newest desc`;
  return rows.map(({ address }) => JSON.parse(address) as Address);
}

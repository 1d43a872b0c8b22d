import type { Address } from "../../deciders/routing/address.ts";
import type { Reads, Tx } from "../../store/engine.ts";

/** An owner has written in private: there they can be asked. */
export async function keepOwnerChat(tx: Tx, address: Address): Promise<void> {
  const { platform, account, peer } = address;
  const written = JSON.stringify(address);
  await tx.run`insert into owner_chats (platform, account, peer, address, at) values (${platform}, ${account}, ${peer}, ${written}, now_ms())
    on conflict (platform, peer, account) do update set address = excluded.address, at = excluded.at`;
}

/** Where this person has written in private, the newest first. */
export async function ownerChats(reads: Reads, { platform, peer }: Pick<Address, "platform" | "peer">): Promise<Address[]> {
  const rows = await reads.all<{ address: string }>`select address from owner_chats
    where platform = ${platform} and peer = ${peer} order by at desc, account`;
  return rows.map(({ address }) => JSON.parse(address));
}

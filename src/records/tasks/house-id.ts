import type { Store } from "../../store/store.ts";

/** What this house is called among houses. Made when it is first asked for; the same on all its nodes, for ever. */
export async function houseId(store: Store, newId: () => string): Promise<string> {
  const known = await store.read.get<{ id: string }>`select id from house where one = 1`;
  if (known) return known.id;
  return store.transact(
    "name the house",
    async (tx) => {
      await tx.run`insert into house (one, id) values (1, ${newId()}) on conflict (one) do nothing`;
      return ((await tx.get<{ id: string }>`select id from house where one = 1`) as { id: string }).id;
    },
    "locked",
  );
}

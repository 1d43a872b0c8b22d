/** How many slots one tenant may fill for each one that stays free: alone it gets three quarters of them. */
const FOR_EACH_FREE = 3;

export interface Room {
  /** How many items may be taken at once, whosever they are. */
  readonly items: number;
  /** Those who may not have another one now; null is work that is nobody's. */
  readonly without: readonly (string | null)[];
}

/**
 * Who may have another slot. A turn can take an hour, and nobody's is broken off: so whoever has slots leaves some free for those who have none.
 * A tenant may fill at most three for each that stays free. One alone leaves a quarter, several together less and less; the last free slot
 * is for somebody who has none. `others`: whether anybody else could come at all.
 */
export function roomFor(limit: number, running: Iterable<string | null>, others: boolean): Room {
  const held = new Map<string | null, number>();
  let taken = 0;
  for (const tenant of running) {
    held.set(tenant, (held.get(tenant) ?? 0) + 1);
    taken++;
  }
  const free = limit - taken;
  if (free <= 0 || !others) return { items: Math.max(0, free), without: [] };
  const without: (string | null)[] = [];
  let most = 0;
  for (const [tenant, slots] of held) {
    if (slots + 1 > FOR_EACH_FREE * (free - 1)) without.push(tenant);
    else most = Math.max(most, slots);
  }
  // All of them may turn out to be one tenant's.
  return { items: Math.max(1, Math.floor((FOR_EACH_FREE * free - most) / (1 + FOR_EACH_FREE))), without };
}

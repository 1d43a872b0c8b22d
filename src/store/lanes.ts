import type { Dialect, Tx } from "./engine.ts";
import { list, type SqlFragment } from "./sql.ts";

/**
 * A lane is a queue of tickets: `tail` is the last one given out, `head` the one whose turn it is. The lane's row is changed by
 * everybody who enters or leaves, so that the two cannot miss each other; it goes with the last item.
 */
export async function enterLane(tx: Tx, lane: string): Promise<{ readonly position: number; readonly first: boolean }> {
  const row = (await tx.get<{ head: number; tail: number }>`
    insert into lanes (lane, head, tail) values (${lane}, 1, 1)
    on conflict (lane) do update set tail = lanes.tail + 1 returning head, tail`) as { head: number; tail: number };
  return { position: row.tail, first: row.head === row.tail };
}

/** After items have left these lanes: whoever is first now becomes ready, with this tag. */
export async function advanceLanes(dialect: Dialect, tx: Tx, lanes: readonly string[], tagged: SqlFragment): Promise<void> {
  // Locked before looking: under read committed the next statement then sees every item that has entered.
  await tx.all`select lane from lanes where lane in ${list(lanes)} order by lane ${dialect.forUpdate}`;
  await tx.run`update lanes set head = coalesce((select min(position) from work where work.lane = lanes.lane and position is not null), tail + 1)
    where lane in ${list(lanes)}`;
  await tx.run`update work set state = case when run_at > now_ms() then 'parked' else 'ready' end, vtime = ${tagged}
    where state = 'queued' and lane in ${list(lanes)}
    and position = (select head from lanes where lanes.lane = work.lane)`;
  await tx.run`delete from lanes where lane in ${list(lanes)} and head > tail`;
}

import type { Dialect, Tx } from "./engine.ts";
import { list, type SqlFragment, sql } from "./sql.ts";
import type { TurnRow } from "./work-items.ts";

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
export async function advanceLanes(dialect: Dialect, tx: Tx, lanes: readonly string[], tagged: SqlFragment): Promise<TurnRow[]> {
  // Locked before looking: under read committed the next statement then sees every item that has entered.
  await tx.all`select lane from lanes where lane in ${list(lanes)} order by lane ${dialect.forUpdate}`;
  await tx.run`update lanes set head = coalesce((select min(position) from work where work.lane = lanes.lane and position is not null), tail + 1)
    where lane in ${list(lanes)}`;
  const next = await tx.all<TurnRow>`update work set state = case when run_at > now_ms() then 'parked' else 'ready' end, vtime = ${tagged}
    where state = 'queued' and ${atHeadOf(lanes)}
    returning state, kind, tenant, run_at - now_ms() as due_in`;
  await tx.run`delete from lanes where lane in ${list(lanes)} and head > tail`;
  return next;
}

/**
 * Of one lane, which is what nearly everybody leaves, its head is looked up once; asked of each item, SQLite goes through all that wait in
 * the lane (0.17 ms for eighty).
 */
function atHeadOf(lanes: readonly string[]): SqlFragment {
  const [lane] = lanes;
  if (lane !== undefined && lanes.length === 1) return sql`lane = ${lane} and position = (select head from lanes where lane = ${lane})`;
  return sql`lane in ${list(lanes)} and position = (select head from lanes where lanes.lane = work.lane)`;
}

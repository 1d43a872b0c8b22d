import type { Reads } from "../../store/engine.ts";
import { code, list, SqlFragment, sql } from "../../store/sql.ts";
import type { Eyes } from "./task-viewers.ts";

/** Beyond every id. */
const LAST = "\u{10FFFF}";
/** Whoever looks as more than so many sees much of what there is: then it is cheaper to go through that. */
const NAMES = 100;

export interface Wanted {
  /** Ids from here on, and below that: `[prefix, prefix…]`. */
  readonly from?: string;
  readonly below?: string | undefined;
  /** On `tasks as t`. */
  readonly conditions?: readonly SqlFragment[];
  readonly limit: number;
}

/**
 * Tasks that these may see, the newest first. For each name it is one range of an index, in order, as far as it is needed: it does not matter
 * how many tasks of others there are.
 */
export async function seenTasks<Row extends { readonly id: string }>(
  reads: Reads,
  eyes: Eyes,
  columns: SqlFragment,
  { from = "", below = LAST, conditions = [], limit }: Wanted,
): Promise<Row[]> {
  if (eyes !== "all" && eyes.length === 0) return [];
  const also = new SqlFragment(
    ["", ...conditions.map(() => "")],
    conditions.map((each) => sql` and ${each}`),
  );
  const all = (seen: SqlFragment): SqlFragment => sql`select * from (select ${columns} from tasks as t
    where t.id >= ${from} and t.id < ${below} ${also} ${seen} order by t.id desc limit ${limit}) as those`;
  const one = (
    viewer: string,
  ): SqlFragment => sql`select * from (select ${columns} from task_viewers as v join tasks as t on t.id = v.task_id
    where v.viewer = ${viewer} and v.task_id >= ${from} and v.task_id < ${below} ${also} order by v.task_id desc limit ${limit}) as those`;
  const parts =
    eyes === "all"
      ? [all(code(""))]
      : eyes.length > NAMES
        ? [all(sql`and exists (select 1 from task_viewers as v where v.task_id = t.id and v.viewer in ${list(eyes)})`)]
        : eyes.map(one);
  const rows = await reads.all<Row>`${new SqlFragment(["", ...parts.slice(1).map(() => " union all "), ""], parts)}`;
  const known = new Map(rows.map((row) => [row.id, row]));
  return [...known.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
}

/** Ids that begin so. */
export async function idsBeginning(reads: Reads, eyes: Eyes, prefix: string, limit: number): Promise<string[]> {
  const rows = await seenTasks<{ id: string }>(reads, eyes, code("t.id"), { from: prefix, below: `${prefix}${LAST}`, limit });
  return rows.map(({ id }) => id);
}

import type { Note } from "../../contract/memory.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import type { Place } from "../../kernel/place-folder.ts";
import type { Reads } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";

export interface NoteRow {
  readonly id: string;
  readonly agent: string;
  readonly circle: Note["circle"];
  readonly person: string;
  readonly place: string;
  readonly counted_in: string;
  readonly body: string;
  readonly labels: string;
  readonly pinned: number;
  readonly run_id: string | null;
  readonly created_at: number;
}

export const NOTE_COLUMNS = code("id, agent, circle, person, place, counted_in, body, labels, pinned, run_id, created_at");

/** Whose notes somebody may see: operators and readers all, an agent its own, nobody else any. */
export function visibleTo(caller: Caller): SqlFragment {
  if (caller.kind === "operator" || caller.kind === "reader") return code("1 = 1");
  return caller.kind === "agent" ? sql`agent = ${caller.name}` : code("1 = 0");
}

/** By its id or the beginning of it. What one may not see is not there. */
export async function findNote(reads: Reads, visible: SqlFragment, prefix: string, locking: SqlFragment): Promise<NoteRow> {
  const rows = /^[0-9a-z]{1,20}$/.test(prefix)
    ? await reads.all<NoteRow>`select ${NOTE_COLUMNS} from memories
        where id >= ${prefix} and id < ${`${prefix}~`} and forgotten_at is null and ${visible} order by id limit 2 ${locking}`
    : [];
  const [row, second] = rows;
  if (!row) throw new Failure("request.not_found", `there is no note "${prefix.slice(0, 40)}"`);
  if (second) throw new Failure("request.malformed", `several notes begin with "${prefix}"`, { hint: "Give more of the id." });
  return row;
}

/** In the order of the ids. Those that were forgotten meanwhile are not there. */
export async function readNotes(reads: Reads, ids: readonly string[]): Promise<Note[]> {
  if (ids.length === 0) return [];
  const rows = await reads.all<NoteRow>`select ${NOTE_COLUMNS} from memories where id in ${list(ids)} and forgotten_at is null`;
  const byId = new Map(rows.map((row) => [row.id, noteOf(row)]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

export function noteOf(row: NoteRow): Note {
  return {
    id: row.id,
    agent: row.agent,
    text: row.body,
    circle: row.circle,
    person: row.circle === "all" ? null : row.person,
    place: JSON.parse(row.place) as Place,
    labels: row.labels === "" ? [] : (row.labels.split(" ") as Label[]),
    pinned: row.pinned === 1,
    run: row.run_id,
    createdAt: row.created_at,
  };
}

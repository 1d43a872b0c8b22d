import type { MemoryQuery, Note, NoteList } from "../../contract/memory.ts";
import type { Caller } from "../../kernel/caller.ts";
import { sha256 } from "../../kernel/canonical-json.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Label } from "../../kernel/label.ts";
import { encodeScope, type Scope, scopeUpperBound } from "../../kernel/scope.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { scopeKey } from "../../store/keys.ts";
import { code, SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { bestFirst } from "./best-first.ts";
import { findNote, NOTE_COLUMNS, type NoteRow, noteOf, readNotes, visibleTo } from "./note-rows.ts";
import { type Circle, circleOf, countedScope, type Standpoint, scopeOfNote, scopesFrom } from "./standpoint.ts";

/** Where notes are found by their words. */
const NOTE_DOCUMENTS = "memory";
/** Of notes that fit, how many are weighed against each other. */
const WEIGHED = 200;

export interface MemoryLimits {
  /** Of one note. */
  readonly characters: number;
  /** Of everybody, or of one person; of a chat or topic, where `memory_scope` says so. */
  readonly notes: number;
  readonly pinnedCharacters: number;
  readonly notesOfAgent: number;
}

export const MEMORY_LIMITS: MemoryLimits = { characters: 4_000, notes: 1_000, pinnedCharacters: 4_000, notesOfAgent: 20_000 };

export interface NewNote {
  readonly text: string;
  readonly pinned: boolean;
  /** `all`: whoever speaks with the agent may hear it; absent: whoever hears this conversation. */
  readonly circle?: Circle;
  readonly labels: readonly Label[];
  readonly run: string | null;
}

export interface SavedNote {
  readonly id: string;
  /** The same words were there already. */
  readonly known: boolean;
}

interface SameRow {
  readonly id: string;
  readonly pinned: number;
  readonly counted_in: string;
}

/** What agents keep. A note is found from where its person, place and agent are; nothing of others is found first and left out afterwards. */
export class Memory {
  readonly #store: Store;
  readonly #newId: NewId;
  readonly #limits: MemoryLimits;

  constructor(store: Store, newId: NewId, limits: MemoryLimits = MEMORY_LIMITS) {
    this.#store = store;
    this.#newId = newId;
    this.#limits = limits;
  }

  async saveIn(tx: Tx, standpoint: Standpoint, { text, pinned, circle = circleOf(standpoint), labels, run }: NewNote): Promise<SavedNote> {
    const { agent, place, person } = standpoint;
    if (text.length > this.#limits.characters)
      throw new Failure("request.too_large", `a note of ${text.length} characters is too long; ${this.#limits.characters} are possible`);
    const scope = scopeOfNote(agent, circle, person, place);
    const key = scopeKey(scope);
    const hash = sha256(text);
    // One with labels is not the same for a turn without: that one may pin it.
    const same = await tx.get<SameRow>`select id, pinned, counted_in from memories
      where scope = ${key} and hash = ${hash} and labels in ('', ${labels.join(" ")}) and forgotten_at is null order by pinned desc, id limit 1`;
    if (same && (!pinned || same.pinned === 1)) return { id: same.id, known: true };
    const told = { circle, pinned, labels, run, characters: text.length };
    if (same) {
      await this.#pin(tx, same, text.length);
      await this.#tell(tx, agent, same.id, told);
      return { id: same.id, known: true };
    }
    const counted = scopeKey(countedScope(standpoint, circle));
    await this.#count(tx, agent, counted, pinned ? text.length : 0);
    const id = this.#newId();
    await tx.run`insert into memories (id, agent, circle, person, place, scope, counted_in, body, hash, labels, pinned, run_id, created_at)
      values (${id}, ${agent}, ${circle}, ${circle === "all" ? "" : person}, ${JSON.stringify(placeOf(standpoint))}, ${key}, ${counted}, ${text}, ${hash},
        ${labels.join(" ")}, ${pinned ? 1 : 0}, ${run}, now_ms())`;
    await this.#store.search.put(tx, { collection: NOTE_DOCUMENTS, id, scope, text: `${text} ${markOf(agent)} ${ANY_MARK}` });
    await this.#tell(tx, agent, id, told);
    return { id, known: false };
  }

  async #tell(tx: Tx, agent: string, id: string, data: object): Promise<void> {
    await this.#store.ledger.append(tx, { type: "memory.saved", actor: agent, subject: ["memory", id], data });
  }

  /** In the order of whoever forgets: first the count, then the note. */
  async #pin(tx: Tx, { id, counted_in: scope }: SameRow, characters: number): Promise<void> {
    const { pinnedCharacters } = this.#limits;
    await tx.get`select 1 from memory_counts where scope = ${scope} ${this.#store.dialect.forUpdate}`;
    // Somebody else may have pinned or forgotten it while we waited: then there is nothing to count.
    const note = await tx.get<{ pinned: number }>`select pinned from memories where id = ${id} and forgotten_at is null`;
    if (note?.pinned !== 0) return;
    const room = await tx.run`update memory_counts set pinned_characters = pinned_characters + ${characters}
      where scope = ${scope} and pinned_characters + ${characters} <= ${pinnedCharacters}`;
    if (room === 0) throw tooMuchPinned(pinnedCharacters);
    await tx.run`update memories set pinned = 1 where id = ${id}`;
  }

  /** The best first, of the newest that have every word, or any of them. */
  async search(
    standpoint: Standpoint,
    text: string,
    limit: number,
    match: "all" | "any",
    reads: Reads = this.#store.read,
  ): Promise<Note[]> {
    const scopes = scopesFrom(standpoint);
    const require = markOf(standpoint.agent);
    const request = { collection: NOTE_DOCUMENTS, scopes, require, text, limit: WEIGHED, match, ranked: false };
    const hits = await this.#store.search.find(request, reads);
    const notes = await readNotes(
      reads,
      hits.map(({ id }) => id),
    );
    return bestFirst(notes, text).slice(0, limit);
  }

  /** Those that every turn here is told, the newest first. */
  async pinned(standpoint: Standpoint, limit: number): Promise<Note[]> {
    const rows = await this.#store.read.all<NoteRow>`select ${NOTE_COLUMNS} from memories
      where pinned = 1 and forgotten_at is null and ${within(scopesFrom(standpoint))} order by id desc limit ${limit}`;
    return rows.map(noteOf);
  }

  /** One that may be found from here, by its id or the beginning of it. */
  async forgetFrom(tx: Tx, standpoint: Standpoint, idPrefix: string, by: string): Promise<Note> {
    return this.#forget(tx, within(scopesFrom(standpoint)), idPrefix, by);
  }

  async forgetIn(tx: Tx, caller: Caller, idPrefix: string): Promise<Note> {
    return this.#forget(tx, visibleTo(caller), idPrefix, caller.name);
  }

  async read(caller: Caller, idPrefix: string): Promise<Note> {
    return noteOf(await findNote(this.#store.read, visibleTo(caller), idPrefix, code("")));
  }

  /** The newest first, or the best of a search. */
  async list(caller: Caller, { agent, q, limit, before }: MemoryQuery): Promise<NoteList> {
    if (q !== undefined) return { notes: await this.#found(caller, agent, q, limit), next: null };
    const wanted = agent === undefined ? visibleTo(caller) : sql`${visibleTo(caller)} and agent = ${agent}`;
    const older = before === undefined ? code("") : sql`and id < ${before}`;
    const rows = await this.#store.read.all<NoteRow>`select ${NOTE_COLUMNS} from memories
      where forgotten_at is null and ${wanted} ${older} order by id desc limit ${limit + 1}`;
    return { notes: rows.slice(0, limit).map(noteOf), next: rows.length > limit ? (rows[limit - 1]?.id ?? null) : null };
  }

  async #found(caller: Caller, agent: string | undefined, q: string, limit: number): Promise<Note[]> {
    const sees = caller.kind === "operator" || caller.kind === "reader";
    if (!sees && (caller.kind !== "agent" || (agent !== undefined && agent !== caller.name))) return [];
    const whose = sees ? agent : caller.name;
    const scopes: Scope[] = [whose === undefined ? ["agent"] : ["agent", whose]];
    const require = whose === undefined ? ANY_MARK : markOf(whose);
    const hits = await this.#store.search.find({ collection: NOTE_DOCUMENTS, scopes, require, text: q, limit });
    return readNotes(
      this.#store.read,
      hits.map(({ id }) => id),
    );
  }

  /** The line of the agent first, then that of the scope: whoever saves or forgets takes them in this order. */
  async #count(tx: Tx, agent: string, scope: string, pinned: number): Promise<void> {
    const { notes, notesOfAgent, pinnedCharacters } = this.#limits;
    if (!(await counted(tx, totalScope(agent), 0, notesOfAgent, Number.MAX_SAFE_INTEGER)))
      throw full(`this agent has ${notesOfAgent} notes already`);
    if (await counted(tx, scope, pinned, notes, pinnedCharacters)) return;
    const row = await tx.get<{ notes: number }>`select notes from memory_counts where scope = ${scope}`;
    throw row && row.notes < notes ? tooMuchPinned(pinnedCharacters) : full(`there are ${notes} notes here already`);
  }

  async #forget(tx: Tx, visible: SqlFragment, idPrefix: string, by: string): Promise<Note> {
    const found = await findNote(tx, visible, idPrefix, code(""));
    await tx.run`update memory_counts set notes = notes - 1 where scope = ${totalScope(found.agent)}`;
    await tx.run`update memory_counts set notes = notes - 1 where scope = ${found.counted_in}`;
    // Of two who forget it at once, the second has waited above and finds nothing here: its counts are taken back with it.
    const mine = await tx.get<{ pinned: number }>`update memories set body = '', hash = '', forgotten_at = now_ms()
      where id = ${found.id} and forgotten_at is null returning pinned`;
    if (!mine) throw new Failure("request.not_found", `there is no note "${idPrefix.slice(0, 40)}"`);
    // By what it is now: somebody may have pinned it since it was found.
    await tx.run`update memory_counts set pinned_characters = pinned_characters - ${mine.pinned * found.body.length}
      where scope = ${found.counted_in}`;
    await this.#store.search.remove(tx, NOTE_DOCUMENTS, found.id);
    await this.#store.ledger.append(tx, {
      type: "memory.forgotten",
      actor: by,
      subject: ["memory", found.id],
      data: { agent: found.agent, run: found.run_id },
    });
    return noteOf(found);
  }
}

/**
 * Words that notes have and nothing else: every turn looks for notes, and without them it would look at each thing ever said with the
 * same words. Not a right: whose they are is in the scope.
 */
const ANY_MARK = "notesofagents0";

function markOf(agent: string): string {
  return `noteof0${sha256(agent).slice(0, 16)}`;
}

/** One more, unless it is one too many: decided by the database while it holds the line. */
async function counted(tx: Tx, scope: string, pinned: number, maxNotes: number, maxPinned: number): Promise<boolean> {
  if (maxNotes < 1 || pinned > maxPinned) return false;
  const row = await tx.get`insert into memory_counts (scope, notes, pinned_characters) values (${scope}, 1, ${pinned})
    on conflict (scope) do update set notes = memory_counts.notes + 1,
      pinned_characters = memory_counts.pinned_characters + excluded.pinned_characters
    where memory_counts.notes < ${maxNotes} and memory_counts.pinned_characters + excluded.pinned_characters <= ${maxPinned} returning notes`;
  return row !== undefined;
}

function totalScope(agent: string): string {
  return scopeKey(["agent", agent]);
}

function placeOf({ place: { platform, account, chat, topic } }: Standpoint): Standpoint["place"] {
  return { platform, account, chat, topic };
}

function within(scopes: readonly Scope[]): SqlFragment {
  const ranges = scopes.map(encodeScope).map((prefix) => sql`(scope >= ${prefix} and scope < ${scopeUpperBound(prefix)})`);
  return new SqlFragment(["(", ...ranges.slice(1).map(() => " or "), ")"], ranges);
}

function tooMuchPinned(characters: number): Failure {
  return full(`pinned notes may have ${characters} characters together, and with this one they would have more`);
}

function full(message: string): Failure {
  return new Failure("memory.full", message);
}

import type { z } from "zod";
import type {
  Session,
  SessionHits,
  SessionList,
  SessionSearch,
  sessionQuery,
  TranscriptEntry,
  TranscriptPage,
  transcriptQuery,
} from "../../contract/sessions.ts";
import type { SessionReach } from "../../deciders/routing/session-reach.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Scope } from "../../kernel/scope.ts";
import type { SearchRequest } from "../../store/search.ts";
import { code, list, SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { fitting, TRANSCRIPT_DOCUMENTS } from "./transcript.ts";
import { type SeeingAgents, sees, visibleAgents } from "./viewer.ts";

interface SessionRow {
  readonly session_key: string;
  readonly agent: string;
  readonly epoch: number;
  readonly model: string | null;
  readonly title: string;
  readonly messages: number;
  readonly created_at: number;
  readonly last_at: number;
}

interface EntryRow {
  readonly position: number;
  readonly epoch: number;
  readonly role: TranscriptEntry["role"];
  readonly body: string;
  readonly run_id: string;
  readonly at: number;
}

/** How many sessions a turn looks through. */
const REACHED = 500;
/** Every part of a key is encoded, so that none of these is a part of somebody's making. */
const SHARED_KEYS = code(`(session_key like '%:group:%' or session_key like '%:channel:%')
  and session_key not like '%:dm:%' and session_key not like '%:peer:%'`);

/** Conversations, as somebody may see them. What one may not see does not exist for one. */
export class Sessions {
  readonly #store: Store;
  readonly #agents: SeeingAgents;

  constructor(store: Store, agents: SeeingAgents) {
    this.#store = store;
    this.#agents = agents;
  }

  /** The newest first. */
  async list(caller: Caller, { agent, prefix, limit, after }: z.output<typeof sessionQuery>): Promise<SessionList> {
    const visible = visibleAgents(caller, this.#agents);
    const rows = await this.#store.read
      .all<SessionRow>`select session_key, agent, epoch, model, title, messages, created_at, last_at from sessions
      where ${ofAgents(visible, agent)} ${beginningWith(prefix)} ${olderThan(after)} order by last_at desc, session_key desc limit ${limit + 1}`;
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return { sessions: rows.slice(0, limit).map(sessionOf), next: last ? `${last.last_at}:${last.session_key}` : null };
  }

  async read(caller: Caller, key: string, { limit, before }: z.output<typeof transcriptQuery>): Promise<TranscriptPage> {
    const row = await this.#store.read.get<SessionRow>`select session_key, agent, epoch, model, title, messages, created_at, last_at
      from sessions where session_key = ${key}`;
    if (!row || !sees(visibleAgents(caller, this.#agents), row.agent))
      throw new Failure("request.not_found", `there is no session "${key}"`);
    const earlier = before === undefined ? code("") : sql`and position < ${before}`;
    const newest = sql`(select position, octet_length(body) as bytes from transcript where session_key = ${key} ${earlier}
      order by position desc limit ${limit}) as newest`;
    const rows = await this.#store.read.all<EntryRow>`select position, epoch, role, body, run_id, at from transcript
      where session_key = ${key} and position in (${fitting(newest, limit)}) order by position`;
    const first = rows[0]?.position ?? 0;
    const more = await this.#store.read.get`select 1 from transcript where session_key = ${key} and position < ${first} limit 1`;
    return { ...sessionOf(row), entries: rows.map(entryOf), next: more ? first : null };
  }

  /** Whose words are looked through is part of the query: nothing of others is found first and left out afterwards. */
  async search(caller: Caller, { q, limit, agent, syntax }: SessionSearch): Promise<SessionHits> {
    const visible = visibleAgents(caller, this.#agents);
    const wanted = agent === undefined ? visible : sees(visible, agent) ? [agent] : [];
    return this.#found({ scopes: agentScopes(wanted), text: q, limit, match: syntax === "operators" ? "operators" : "all" });
  }

  /** The same for a turn: only what may be heard in its conversation. Of its agent's sessions the newest that may, so many at most. */
  async searchFrom(caller: Caller, reach: SessionReach, text: string, limit: number): Promise<SessionHits> {
    const visible = visibleAgents(caller, this.#agents);
    if (!sees(visible, reach.agent)) return { hits: [] };
    const others = reach.others ? agentScopes(visible === "all" ? "all" : visible.filter((each) => each !== reach.agent)) : [];
    const rows = await this.#store.read.all<{ session_key: string }>`select session_key from sessions
      where agent = ${reach.agent} and ${reached(reach)} order by last_at desc, session_key desc limit ${REACHED}`;
    const exactly = rows.map((row) => ["agent", reach.agent, row.session_key]);
    const request = { scopes: others, except: ["agent", reach.agent], exactly, text, limit };
    const whole = await this.#found({ ...request, match: "all" });
    return whole.hits.length > 0 ? whole : this.#found({ ...request, match: "any" });
  }

  async #found(request: Omit<SearchRequest, "collection">): Promise<SessionHits> {
    const found = await this.#store.search.find({ collection: TRANSCRIPT_DOCUMENTS, ...request });
    const hits: SessionHits["hits"] = [];
    for (const { id, snippet, score } of found) {
      const at = id.indexOf("@");
      const [position, key] = [Number(id.slice(0, at)), id.slice(at + 1)];
      const row = await this.#store.read.get<EntryRow & { agent: string }>`select t.position, t.epoch, t.role, t.run_id, t.at, s.agent
        from transcript as t join sessions as s on s.session_key = t.session_key where t.session_key = ${key} and t.position = ${position}`;
      if (row)
        hits.push({ key, agent: row.agent, position, epoch: row.epoch, role: row.role, run: row.run_id, at: row.at, snippet, score });
    }
    return { hits };
  }
}

function agentScopes(agents: "all" | readonly string[]): Scope[] {
  return agents === "all" ? [["agent"]] : agents.map((each) => ["agent", each]);
}

/** Compared letter by letter: `like` does not tell large letters from small ones on SQLite, so that it may only leave out. */
function reached({ keys, shapes, shared }: SessionReach): SqlFragment {
  const conditions = [
    sql`session_key in ${list(keys)}`,
    ...shapes.map(
      ({ begins, ends }) => sql`(session_key >= ${begins} and session_key < ${`${begins}\u{10FFFF}`}
        and substr(session_key, length(session_key) - ${ends.length - 1}) = ${ends})`,
    ),
    ...(shared === null ? [] : [sql`(session_key >= ${shared} and session_key < ${`${shared}\u{10FFFF}`} and ${SHARED_KEYS})`]),
  ];
  return new SqlFragment(["(", ...conditions.slice(1).map(() => " or "), ")"], conditions);
}

function ofAgents(visible: "all" | readonly string[], wanted: string | undefined): SqlFragment {
  const visibly = visible === "all" ? code("1 = 1") : sql`agent in ${list(visible)}`;
  return wanted === undefined ? visibly : sql`${visibly} and agent = ${wanted}`;
}

function beginningWith(prefix: string | undefined): SqlFragment {
  return prefix === undefined ? code("") : sql`and session_key >= ${prefix} and session_key < ${`${prefix}\u{10FFFF}`}`;
}

function olderThan(cursor: string | undefined): SqlFragment {
  if (cursor === undefined) return code("");
  const [, time, key] = /^(\d{1,15}):(.+)$/s.exec(cursor) ?? [];
  if (time === undefined || key === undefined) throw new Failure("request.malformed", "after: expected `next` of the part before");
  return sql`and (last_at, session_key) < (${Number(time)}, ${key})`;
}

function sessionOf(row: SessionRow): Session {
  const { session_key: key, agent, title, epoch, model, messages } = row;
  return { key, agent, title, epoch, model, messages, createdAt: row.created_at, lastAt: row.last_at };
}

function entryOf({ position, epoch, role, body, run_id: run, at }: EntryRow): TranscriptEntry {
  return { position, epoch, role, text: body, run, at };
}

import type { z } from "zod";
import { GUEST_TTL_MS, type Guest, type GuestLease, guestName, type JoinedGuest, type newGuest } from "../../contract/guests.ts";
import { type Workspace, workspace } from "../../contract/workspace.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure, isFailure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import { list, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import type { Access } from "./access.ts";
import { callerOf, type KnownAgents } from "./token-scope.ts";

/** So many names are tried, before a guest is told that there is none. */
const MAX_TRIES = 1_000;
const CLIENT_LENGTH = 40;

export interface EndedGuest {
  readonly name: string;
  /** The gateway chose its name, and gives it to nobody again. */
  readonly numbered: boolean;
}

interface GuestRow {
  readonly name: string;
  readonly client: string;
  readonly workspace: string | null;
  readonly joined_at: number;
  readonly expires_at: number;
}

/** For the pulse: whether one is silent, or its token was revoked. */
export const GUESTS_GONE = sql`(select min(expires_at) from guests) <= now_ms()
  or exists (select 1 from guests as g where not exists (select 1 from tokens as t where t.id = g.token and t.revoked_at is null))`;

/**
 * Outside agents that are here: each process has a name of its own, for as long as it says that it lives.
 *
 *   free → here(name, token) → renewed* → left | silent for too long | its token revoked → free
 */
export class Guests {
  readonly #store: Store;
  readonly #access: Access;
  readonly #agents: KnownAgents;

  constructor(store: Store, access: Access, agents: KnownAgents) {
    this.#store = store;
    this.#access = access;
    this.#agents = agents;
  }

  /** The unique name decides, so that processes that come at the same instant get different ones. */
  join(by: Caller, wanted: z.output<typeof newGuest>): Promise<JoinedGuest> {
    return this.#store.transact("join", (tx) => this.joinIn(tx, by, wanted), "locked");
  }

  async joinIn(tx: Tx, by: Caller, wanted: z.output<typeof newGuest>): Promise<JoinedGuest> {
    await this.#refuseCutOff(tx, wanted.was?.id);
    for await (const { name, numbered } of this.#names(tx, wanted)) {
      if (!this.#mayBear(name, name === wanted.name)) continue;
      const other = await tx.get`select 1 from tokens where scope = ${`guest:${name}`} and revoked_at is null limit 1`;
      if (other) continue;
      const row = await tx.get<{ expires_at: number }>`
        insert into guests (name, token, client, numbered, process, workspace, joined_at, expires_at)
        values (${name}, '', ${wanted.client}, ${numbered ? 1 : 0}, ${wanted.process ?? null},
          ${wanted.workspace ? JSON.stringify(wanted.workspace) : null}, now_ms(), now_ms() + ${GUEST_TTL_MS})
        on conflict (name) do nothing returning expires_at`;
      if (!row) continue;
      const { id, token } = await this.#access.createIn(tx, by, { scope: `guest:${name}`, name: `joined: ${wanted.client}`.slice(0, 100) });
      await tx.run`update guests set token = ${id} where name = ${name}`;
      return { name, id, token, expiresAt: row.expires_at };
    }
    throw new Failure("request.busy", `${MAX_TRIES} names for this guest are taken already`);
  }

  async renew(caller: Caller): Promise<GuestLease> {
    const row = await this.#store.transact(
      "renew guest",
      (tx) => tx.get<{ expires_at: number }>`update guests set expires_at = now_ms() + ${GUEST_TTL_MS}
        where name = ${caller.name} returning expires_at`,
      "locked",
    );
    if (!row) throw new Failure("request.not_found", `"${caller.name}" has not joined as a guest`);
    return { name: caller.name, expiresAt: row.expires_at };
  }

  /** Nobody could say that he lives while there was no daemon. */
  async giveTime(): Promise<void> {
    await this.#store.transact(
      "give guests time",
      (tx) => tx.run`update guests set expires_at = now_ms() + ${GUEST_TTL_MS} where expires_at < now_ms() + ${GUEST_TTL_MS}`,
      "locked",
    );
  }

  /** Those whose time is up or whose token was taken away. */
  async gone(limit: number): Promise<string[]> {
    const rows = await this.#store.read.all<{ name: string }>`select name from guests as g where expires_at <= now_ms()
      or not exists (select 1 from tokens as t where t.id = g.token and t.revoked_at is null) limit ${limit}`;
    return rows.map(({ name }) => name);
  }

  /** Takes its name and token away. With `onlyIfGone`, one that has spoken meanwhile stays. */
  async endIn(tx: Tx, name: string, actor: string, onlyIfGone: boolean): Promise<EndedGuest | undefined> {
    const { forUpdate } = this.#store.dialect;
    const row = await tx.get<{ token: string; numbered: number; late: number }>`select token, numbered,
      case when expires_at <= now_ms() then 1 else 0 end as late from guests where name = ${name} ${forUpdate}`;
    if (!row) return undefined;
    const valid = await tx.get`select 1 from tokens where id = ${row.token} and revoked_at is null`;
    if (onlyIfGone && row.late === 0 && valid) return undefined;
    await tx.run`delete from guests where name = ${name}`;
    await tx.run`delete from guest_sessions where token = ${row.token}`;
    // One that an operator has revoked stays in the list of tokens; the others would only fill it.
    if (valid) {
      await tx.run`delete from tokens where id = ${row.token}`;
      await this.#store.ledger.append(tx, { type: "token.revoked", actor, subject: ["token", row.token], data: { guest: name } });
    }
    return { name, numbered: row.numbered === 1 };
  }

  async list(): Promise<Guest[]> {
    const rows = await this.#store.read.all<GuestRow>`select name, client, workspace, joined_at, expires_at from guests
      where expires_at > now_ms() order by name`;
    return rows.map((row) => ({
      name: row.name,
      client: row.client,
      repository: repositoryOf(row.workspace),
      joinedAt: row.joined_at,
      expiresAt: row.expires_at,
    }));
  }

  /** Whose session it is, from what was noted before. */
  async ofSession(session: string): Promise<string | undefined> {
    const row = await this.#store.read.get<{ name: string }>`select g.name from guest_sessions as s join guests as g on g.token = s.token
      where s.session = ${session}`;
    return row?.name;
  }

  /**
   * The guest whose process is the nearest of these. When several came from one process, a repository of theirs decides; when that
   * does not either, it is nobody.
   */
  async ofProcesses(nearestFirst: readonly string[], repositories: readonly string[]): Promise<string | undefined> {
    const rows = await this.#store.read.all<{ name: string; process: string; workspace: string | null }>`
      select name, process, workspace from guests where process in ${list(nearestFirst)}`;
    for (const one of nearestFirst) {
      const same = rows.filter((row) => row.process === one);
      if (same.length === 0) continue;
      const here = same.filter((row) => repositories.includes(repositoryOf(row.workspace) ?? ""));
      const candidates = same.length === 1 ? same : here;
      return candidates.length === 1 ? candidates[0]?.name : undefined;
    }
    return undefined;
  }

  /** From now on the session's hooks are known to be this guest's, wherever they run. */
  async noteSession(session: string, name: string): Promise<void> {
    await this.#store.transact(
      "note session",
      (
        tx,
      ) => tx.run`insert into guest_sessions (session, token, noted_at) select ${session}, token, now_ms() from guests where name = ${name}
        on conflict (session) do update set token = excluded.token, noted_at = excluded.noted_at`,
      "locked",
    );
  }

  /** Without a name that it asks for it gets a number that nobody had: what was sent to another must never be its own. */
  async *#names(
    tx: Tx,
    { client, name, was }: z.output<typeof newGuest>,
  ): AsyncGenerator<{ readonly name: string; readonly numbered: boolean }> {
    const base = name ?? baseOf(client);
    const numbered = name === undefined;
    if (was && new RegExp(`^${base}(-\\d+)?$`).test(was.name)) yield { name: was.name, numbered };
    if (!numbered) yield { name: base, numbered };
    for (let tried = 1; tried <= MAX_TRIES; tried++)
      yield { name: `${base}-${numbered ? await drawNumber(tx, base) : tried + 1}`, numbered };
  }

  /** A name that was asked for and cannot be had is told; one that was made up is left out. */
  #mayBear(name: string, asked: boolean): boolean {
    try {
      callerOf(`guest:${name}`, this.#agents);
      return true;
    } catch (error) {
      if (asked || !isFailure(error)) throw error;
      return false;
    }
  }

  async #refuseCutOff(tx: Tx, id: string | undefined): Promise<void> {
    const revoked = id === undefined ? undefined : await tx.get`select 1 from tokens where id = ${id} and revoked_at is not null`;
    if (revoked)
      throw new Failure("request.forbidden", "this guest's token was revoked", { hint: "Ask the operator why, then start anew." });
  }
}

async function drawNumber(tx: Tx, base: string): Promise<number> {
  const row = await tx.get<{ last: number }>`insert into guest_numbers (client, last) values (${base}, 1)
    on conflict (client) do update set last = guest_numbers.last + 1 returning last`;
  return row?.last ?? 1;
}

function baseOf(client: string): string {
  const base = client
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, CLIENT_LENGTH)
    .replace(/-+$/, "");
  return guestName.safeParse(base).success ? base : "guest";
}

function repositoryOf(text: string | null): string | null {
  const known: Workspace | undefined = text === null ? undefined : workspace.safeParse(JSON.parse(text)).data;
  return known?.repository ?? null;
}

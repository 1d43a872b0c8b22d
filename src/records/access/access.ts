import type { CreatedToken, NewToken, Token } from "../../contract/tokens.ts";
import type { Caller } from "../../kernel/caller.ts";
import { sha256 } from "../../kernel/canonical-json.ts";
import { Failure, isFailure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Random } from "../../kernel/random.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { callerOf, type KnownAgents } from "./token-scope.ts";

const PREFIX = "gh_";
const SECRET_BYTES = 32;
const SHAPE = /^gh_[A-Za-z0-9_-]{43}$/;
/** How old an answer of the database may be. With the look at open streams it bounds how long a revoked token lives: a second. */
const FRESH_MS = 250;
const REMEMBERED = 1_000;
const USE_NOTED_EVERY_MS = 60_000;

interface TokenRow {
  readonly id: string;
  readonly name: string | null;
  readonly scope: string;
  readonly created_at: number;
  readonly created_by: string;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

/** Tokens: made, shown once, looked up by hash, revoked. The database is asked, so that every node knows the same. */
export class Access {
  readonly #store: Store;
  readonly #agents: KnownAgents;
  readonly #newId: NewId;
  readonly #random: Random;
  readonly #recent = new Map<string, { readonly row: TokenRow; readonly readAt: number }>();

  constructor(store: Store, agents: KnownAgents, newId: NewId, random: Random) {
    this.#store = store;
    this.#agents = agents;
    this.#newId = newId;
    this.#random = random;
  }

  create(by: Caller, wanted: NewToken): Promise<CreatedToken> {
    return this.#store.transact("create token", (tx) => this.createIn(tx, by, wanted), "locked");
  }

  async createIn(tx: Tx, by: Caller, { scope, name = null }: { scope: string; name?: string | null | undefined }): Promise<CreatedToken> {
    callerOf(scope, this.#agents);
    const id = this.#newId();
    const secret = `${PREFIX}${Buffer.from(this.#random.bytes(SECRET_BYTES)).toString("base64url")}`;
    await tx.run`insert into tokens (id, hash, name, scope, created_at, created_by)
      values (${id}, ${sha256(secret)}, ${name}, ${scope}, now_ms(), ${by.name})`;
    await this.#store.ledger.append(tx, { type: "token.created", actor: by.name, subject: ["token", id], data: { scope, name } });
    return { id, token: secret, scope, name };
  }

  async list(): Promise<Token[]> {
    const rows = await this.#store.read.all<TokenRow>`
      select id, name, scope, created_at, created_by, last_used_at, revoked_at from tokens order by id`;
    return rows.map(tokenOf);
  }

  /** Final. Revoking what is revoked changes nothing. */
  async revoke(by: Caller, idPrefix: string): Promise<Token> {
    const token = await this.#store.transact("revoke token", (tx) => this.#revokeIn(tx, by, idPrefix), "locked");
    this.#recent.clear();
    return token;
  }

  async #revokeIn(tx: Tx, by: Caller, idPrefix: string): Promise<Token> {
    const { id } = await this.#find(tx, idPrefix);
    const changed = await tx.run`update tokens set revoked_at = now_ms() where id = ${id} and revoked_at is null`;
    if (changed > 0) await this.#store.ledger.append(tx, { type: "token.revoked", actor: by.name, subject: ["token", id] });
    return this.#find(tx, id);
  }

  /** Whom the token stands for; undefined for one that was never made, that is revoked, or whose name belongs to somebody else by now. */
  async authenticate(secret: string): Promise<{ readonly caller: Caller; readonly tokenId: string } | undefined> {
    if (!SHAPE.test(secret)) return undefined;
    const row = await this.#lookUp(sha256(secret));
    if (!row || row.revoked_at !== null) return undefined;
    const caller = this.#callerNow(row.scope);
    return caller && { caller, tokenId: row.id };
  }

  /** Those of the tokens that still stand for somebody. */
  async stillValid(ids: readonly string[]): Promise<Set<string>> {
    const rows = await this.#store.read.all<{ id: string; scope: string }>`
      select id, scope from tokens where id in ${list(ids)} and revoked_at is null`;
    return new Set(rows.filter(({ scope }) => this.#callerNow(scope)).map(({ id }) => id));
  }

  #callerNow(scope: string): Caller | undefined {
    try {
      return callerOf(scope, this.#agents);
    } catch (error) {
      if (isFailure(error)) return undefined;
      throw error;
    }
  }

  async #lookUp(hash: string): Promise<TokenRow | undefined> {
    const recent = this.#recent.get(hash);
    if (recent && performance.now() - recent.readAt < FRESH_MS) return recent.row;
    const readAt = performance.now();
    const row = await this.#store.read.get<TokenRow & { at: number }>`
      select id, name, scope, created_at, created_by, last_used_at, revoked_at, now_ms() as at from tokens where hash = ${hash}`;
    if (!row) return undefined;
    if (this.#recent.size >= REMEMBERED) this.#recent.clear();
    this.#recent.set(hash, { row, readAt });
    if (row.revoked_at === null && row.at - (row.last_used_at ?? 0) > USE_NOTED_EVERY_MS) this.#noteUse(row.id);
    return row;
  }

  /** Nobody waits for it, and nothing is lost when it fails. */
  #noteUse(id: string): void {
    const noted = this.#store.transact(
      "note token",
      (tx) =>
        tx.run`update tokens set last_used_at = now_ms() where id = ${id} and coalesce(last_used_at, 0) < now_ms() - ${USE_NOTED_EVERY_MS}`,
      "locked",
    );
    noted.catch(() => {});
  }

  async #find(reads: Reads, prefix: string): Promise<Token> {
    const rows = /^[0-9a-z]{1,20}$/.test(prefix)
      ? await reads.all<TokenRow>`select id, name, scope, created_at, created_by, last_used_at, revoked_at from tokens
          where id >= ${prefix} and id < ${`${prefix}~`} order by id limit 2`
      : [];
    const [row, second] = rows;
    if (!row) throw new Failure("request.not_found", `there is no token "${prefix}"`);
    if (second) throw new Failure("request.malformed", `several tokens begin with "${prefix}"`, { hint: "Give more of the id." });
    return tokenOf(row);
  }
}

function tokenOf(row: TokenRow): Token {
  return {
    id: row.id,
    name: row.name,
    scope: row.scope,
    createdAt: row.created_at,
    createdBy: row.created_by,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
  };
}

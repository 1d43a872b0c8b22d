import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../../kernel/clock.ts";
import { asFailure, Failure } from "../../../kernel/failure.ts";
import { jitteredBackoff, type Random } from "../../../kernel/random.ts";
import type { ToolList } from "../../../records/mcp/tool-list.ts";
import type { Connection } from "./connection.ts";

export interface LinkLimits {
  /** How long a turn or a call waits for a server to start. */
  readonly patienceMs: number;
  /** How long the start itself may take; whoever comes later finds it running. */
  readonly startMs: number;
  readonly idleMs: number;
  /** A list is asked for anew in each turn, but not by each of several that begin together. */
  readonly listAgeMs: number;
}

export const LINK_LIMITS: LinkLimits = { patienceMs: 10_000, startMs: 60_000, idleMs: 10 * 60_000, listAgeMs: 1_000 };

export interface LinkParts {
  readonly server: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: LinkLimits;
  open(signal: AbortSignal, ended: () => void): Promise<Connection>;
  /** It has failed, for the operator. */
  failed(why: string): void;
}

interface Starting {
  readonly since: number;
  readonly connection: Promise<Connection>;
  readonly given: AbortController;
}

/** Of a server that has failed more than once. */
const SHORT_PATIENCE_MS = 1_000;
/** One that lived so long is taken for sound when it dies. */
const STEADY_MS = 30_000;
const BACKOFF_MS = 500;
const BACKOFF_AT_MOST_MS = 5 * 60_000;

/**
 * The way to one server of one agent with one config.
 *
 *   at rest → starting → connected → at rest (nobody used it for a while)
 *   starting, connected → broken (it failed, hung or died) → starting, when somebody wants it and the time has come
 *   any → closed, for ever
 */
export class ServerLink {
  readonly #parts: LinkParts;
  #connection: Connection | undefined;
  #starting: Starting | undefined;
  #connectedAt = 0;
  #failures = 0;
  #notBefore = 0;
  #problem: string | null = null;
  #users = 0;
  #idle: NodeJS.Timeout | undefined;
  #closed: "retired" | "closed" | null = null;
  #lastList: ToolList | undefined;
  /** Connections that are on their way out. */
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  /** For a turn: the tools it has. A server at rest is not started for it, once it is known. */
  async list(signal: AbortSignal): Promise<ToolList> {
    if (this.#lastList !== undefined && this.#connection === undefined && this.#starting === undefined && this.#failures === 0)
      return this.#lastList;
    const patience = this.#failures > 1 ? SHORT_PATIENCE_MS : this.#parts.limits.patienceMs;
    const asked = this.use(signal, patience, (connection) => this.listOf(connection, this.#parts.limits.listAgeMs));
    return this.#within(asked, patience, signal, "it does not say what its tools are");
  }

  /** What a connection offers. One that does not answer is given up. */
  async listOf(connection: Connection, maxAgeMs?: number): Promise<ToolList> {
    try {
      const list = await connection.list(this.#parts.clock.now(), maxAgeMs);
      this.#lastList = list;
      return list;
    } catch (error) {
      this.drop(connection, asFailure(error).message);
      throw error;
    }
  }

  /** Runs a body with a connection that is kept for as long as it runs. */
  async use<T>(signal: AbortSignal, patienceMs: number, body: (connection: Connection) => Promise<T>): Promise<T> {
    this.#users++;
    clearTimeout(this.#idle);
    try {
      return await body(await this.#connected(signal, patienceMs));
    } finally {
      this.#users--;
      this.#rest();
    }
  }

  /** This connection is of no use any more. */
  drop(connection: Connection, why: string): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    if (this.#parts.clock.now() - this.#connectedAt > STEADY_MS) this.#failures = 0;
    this.#broken(connection.fate ?? why);
    this.#end(connection);
  }

  /** Another config has taken its place: it ends when those who use it are done. */
  retire(): void {
    this.#closed ??= "retired";
    if (this.#users === 0) this.#starting?.given.abort(this.#unavailable("its config has changed"));
    this.#rest();
  }

  /** Nothing of it runs any more, and nobody is left in it. */
  get isOver(): boolean {
    return this.#users === 0 && !this.#connection && !this.#starting && this.#ending.size === 0;
  }

  /** Resolves when nothing of it is left running. */
  async close(): Promise<void> {
    this.#closed = "closed";
    clearTimeout(this.#idle);
    this.#starting?.given.abort(this.#unavailable("it was stopped"));
    await this.#starting?.connection.catch(() => {});
    if (this.#connection) this.#letGo(this.#connection);
    await Promise.all(this.#ending);
  }

  async #connected(signal: AbortSignal, patienceMs: number): Promise<Connection> {
    const { clock, server } = this.#parts;
    if (this.#connection) return this.#connection;
    if (!this.#starting) {
      const wait = this.#notBefore - clock.now();
      if (wait > patienceMs) throw this.#unavailable(`${this.#problem}; it is tried again in ${Math.ceil(wait / 1000)} s`);
      if (wait > 0) await sleep(wait, undefined, { signal });
    }
    if (this.#closed === "closed") throw this.#unavailable("it was stopped");
    const starting = this.#starting ?? this.#start();
    const left = starting.since + patienceMs - clock.now();
    return this.#within(starting.connection, left, signal, `it has not started within ${Math.round(patienceMs / 1000)} s`).catch(
      (error) => {
        throw error instanceof Failure && error.message.includes(`MCP server ${server}`)
          ? error
          : this.#unavailable(asFailure(error).message);
      },
    );
  }

  #start(): Starting {
    const given = new AbortController();
    if (this.#connection) return { since: 0, connection: Promise.resolve(this.#connection), given };
    const { clock, limits, open } = this.#parts;
    let opened: Connection | undefined;
    let hasEnded = false;
    const late = setTimeout(() => given.abort(new Error(`it has not started within ${limits.startMs / 1000} s`)), limits.startMs).unref();
    const connection = open(given.signal, () => {
      hasEnded = true;
      if (opened) this.drop(opened, "the connection broke");
    }).then(
      (fresh) => {
        opened = fresh;
        this.#starting = undefined;
        this.#connection = fresh;
        this.#connectedAt = clock.now();
        if (hasEnded) this.drop(fresh, "the connection broke");
        this.#rest();
        return fresh;
      },
      (error: unknown) => {
        this.#starting = undefined;
        this.#broken(asFailure(error).message);
        throw error;
      },
    );
    // Nobody may wait for it any more.
    connection.catch(() => {}).finally(() => clearTimeout(late));
    this.#starting = { since: clock.now(), connection, given };
    return this.#starting;
  }

  #broken(why: string): void {
    const { clock, random, failed } = this.#parts;
    this.#failures++;
    this.#notBefore = clock.now() + jitteredBackoff(this.#failures, random, BACKOFF_MS, BACKOFF_AT_MOST_MS);
    this.#problem = why;
    if (this.#closed === null) failed(why);
  }

  /** It answered a call: whatever was before, it works. */
  works(): void {
    this.#failures = 0;
  }

  #rest(): void {
    const connection = this.#connection;
    if (this.#users > 0 || !connection) return;
    clearTimeout(this.#idle);
    if (this.#closed !== null) this.#letGo(connection);
    else this.#idle = setTimeout(() => this.#letGo(connection), this.#parts.limits.idleMs).unref();
  }

  #letGo(connection: Connection): void {
    if (this.#connection === connection) this.#connection = undefined;
    this.#end(connection);
  }

  #end(connection: Connection): void {
    const ending = connection.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async #within<T>(promise: Promise<T>, ms: number, signal: AbortSignal, late: string): Promise<T> {
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    try {
      const waited = sleep(Math.max(0, ms), undefined, { signal: ended }).then(
        () => Promise.reject(this.#unavailable(this.#problem === null ? late : `${late} (before: ${this.#problem})`)),
        () => (signal.aborted ? Promise.reject(signal.reason) : new Promise<never>(() => {})),
      );
      return await Promise.race([promise, waited]);
    } finally {
      over.abort();
    }
  }

  #unavailable(why: string): Failure {
    return new Failure("tool.unavailable", `the MCP server ${this.#parts.server} is not available: ${why}`);
  }
}

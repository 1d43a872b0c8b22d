import pg from "pg";
import type { Wake, WakeTopic } from "../wake.ts";
import type { PostgresAddress } from "./postgres-url.ts";
import { clientConfig } from "./sessions.ts";

/**
 * Hints between nodes by NOTIFY. Never inside a writing transaction: there it made commits 4 to 11 times slower. The first is
 * sent at once, those of the next moment are gathered and sent together; one that is lost costs a poll's delay and nothing else.
 */
const GATHER_MS = 8;
const RECONNECT_MS = 1_000;

export class Hints {
  readonly #channel: string;
  readonly #self: string;
  readonly #address: PostgresAddress;
  readonly #pool: pg.Pool;
  readonly #wake: Wake;
  readonly #pending = new Set<WakeTopic>();
  #gather: NodeJS.Timeout | undefined;
  #reconnect: NodeJS.Timeout | undefined;
  #listener: pg.Client | undefined;
  #closed = false;

  constructor(address: PostgresAddress, pool: pg.Pool, wake: Wake, self: string) {
    this.#self = self;
    this.#channel = `guildhall_${address.schema}`;
    this.#address = address;
    this.#pool = pool;
    this.#wake = wake;
    void this.#listen();
  }

  send(topic: WakeTopic): void {
    this.#wake.hint(topic);
    this.#pending.add(topic);
    if (!this.#gather) this.#notify();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#gather);
    clearTimeout(this.#reconnect);
    await this.#listener?.end().catch(() => {});
  }

  #notify(): void {
    this.#gather = undefined;
    if (this.#pending.size === 0 || this.#closed) return;
    this.#gather = setTimeout(() => this.#notify(), GATHER_MS);
    const payload = `${this.#self} ${[...this.#pending].join(" ")}`;
    this.#pending.clear();
    this.#pool.query("select pg_notify($1, $2)", [this.#channel, payload]).catch(() => {});
  }

  async #listen(): Promise<void> {
    if (this.#closed) return;
    const listener = new pg.Client(clientConfig(this.#address));
    this.#listener = listener;
    let again = false;
    const reconnect = (): void => {
      if (again || this.#closed) return;
      again = true;
      listener.end().catch(() => {});
      this.#reconnect = setTimeout(() => void this.#listen(), RECONNECT_MS);
      this.#reconnect.unref();
    };
    listener.on("error", reconnect);
    listener.on("end", reconnect);
    listener.on("notification", ({ payload }) => {
      const [sender, ...topics] = (payload ?? "").split(" ");
      if (sender !== this.#self) for (const topic of topics) this.#wake.hint(topic as WakeTopic);
    });
    try {
      await listener.connect();
      await listener.query(`LISTEN "${this.#channel}"`);
      // Whatever was said while we did not listen.
      this.#wake.hint("ledger");
      this.#wake.hint("work");
    } catch {
      reconnect();
    }
  }
}

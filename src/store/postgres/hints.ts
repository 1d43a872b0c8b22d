import pg from "pg";
import { type Reach, WAKE_TOPICS, type Wake, type WakeTopic } from "../wake.ts";
import type { PostgresAddress } from "./postgres-url.ts";
import { clientConfig } from "./sessions.ts";

const GATHER_MS = 8;
/**
 * Every commit leaves events, and on other nodes only those care who follow them: with four nodes there were two NOTIFY a message, each for all four.
 * So whoever follows says so, and nobody tells of events where he has not heard it; and what is followed elsewhere may be this late while much happens.
 */
const GATHER_EVENTS_MS = 100;
const FOLLOWS = "follows";
const SAY_AGAIN_MS = 5_000;
const HEARD_FOR_MS = 15_000;
const RECONNECT_MS = 1_000;

/**
 * Hints between nodes by NOTIFY. Never inside a writing transaction: there it made commits 4 to 11 times slower. The first is
 * sent at once, those of the next moment are gathered and sent together; one that is lost costs a poll's delay and nothing else.
 */
export class Hints {
  readonly #channel: string;
  readonly #self: string;
  readonly #address: PostgresAddress;
  readonly #pool: pg.Pool;
  readonly #wake: Wake;
  readonly #pending = new Set<WakeTopic>();
  #saidAt = Number.NEGATIVE_INFINITY;
  #heardAt = Number.NEGATIVE_INFINITY;
  readonly #pauses = new Map<WakeTopic, NodeJS.Timeout>();
  #reconnect: NodeJS.Timeout | undefined;
  #listener: pg.Client | undefined;
  #closed = false;

  constructor(address: PostgresAddress, pool: pg.Pool, wake: Wake, self: string) {
    this.#self = self;
    this.#channel = `guildhall_${address.schema}`;
    this.#address = address;
    this.#pool = pool;
    this.#wake = wake;
    wake.onWait = (topic) => {
      if (topic === "ledger") this.#sayFollows();
    };
    void this.#listen();
  }

  send(topic: WakeTopic, reach: Reach): void {
    this.#wake.hint(topic);
    if (reach === "everywhere") this.tellOthers(topic);
  }

  tellOthers(topic: WakeTopic): void {
    if (topic === "ledger" && performance.now() - this.#heardAt > HEARD_FOR_MS) return;
    this.#pending.add(topic);
    if (!this.#pauses.has(topic)) this.#notify();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const pause of this.#pauses.values()) clearTimeout(pause);
    clearTimeout(this.#reconnect);
    await this.#listener?.end().catch(() => {});
  }

  #notify(): void {
    if (this.#closed) return;
    const topics = [...this.#pending];
    this.#pending.clear();
    for (const topic of topics) this.#pause(topic);
    this.#send(topics.join(" "));
  }

  #sayFollows(): void {
    const now = performance.now();
    if (this.#closed || now - this.#saidAt < SAY_AGAIN_MS) return;
    this.#saidAt = now;
    this.#send(FOLLOWS);
  }

  #send(words: string): void {
    this.#pool.query("select pg_notify($1, $2)", [this.#channel, `${this.#self} ${words}`]).catch(() => {});
  }

  /** What is pending goes along with whatever is sent before its own pause is over. */
  #pause(topic: WakeTopic): void {
    clearTimeout(this.#pauses.get(topic));
    const over = (): void => {
      this.#pauses.delete(topic);
      if (this.#pending.has(topic)) this.#notify();
    };
    this.#pauses.set(topic, setTimeout(over, topic === "ledger" ? GATHER_EVENTS_MS : GATHER_MS).unref());
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
      const [sender, ...words] = (payload ?? "").split(" ");
      if (sender === this.#self) return;
      for (const word of words)
        if (word === FOLLOWS) this.#heardAt = performance.now();
        else this.#wake.hint(word as WakeTopic);
    });
    try {
      await listener.connect();
      await listener.query(`LISTEN "${this.#channel}"`);
      // Whatever was said while we did not listen.
      for (const topic of WAKE_TOPICS) this.#wake.hint(topic);
    } catch {
      reconnect();
    }
  }
}

import { setImmediate as nextTurn } from "node:timers/promises";
import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../engine.ts";
import type { SqlValue } from "../sql.ts";
import type { WakeTopic } from "../wake.ts";
import type { Connection } from "./connection.ts";

/** A call never leaves the thread: a body of very many would keep timers and sockets from running. */
const CALLS_BEFORE_YIELD = 200;

/** One operation's view of the writer, until its body has ended. */
export class SqliteTx implements Tx {
  readonly label: string;
  readonly topics: WakeTopic[] = [];
  readonly acts: (() => void)[] = [];
  wrote = false;
  #connection: Connection | undefined;
  #calls = 0;

  constructor(label: string, connection: Connection) {
    this.label = label;
    this.#connection = connection;
  }

  get open(): boolean {
    return this.#connection !== undefined;
  }

  end(): void {
    this.#connection = undefined;
  }

  async all<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row[]> {
    if (++this.#calls % CALLS_BEFORE_YIELD === 0) await nextTurn();
    this.wrote ||= !isSelect(strings);
    return this.#live().all<Row>(strings, values);
  }

  async get<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row | undefined> {
    if (++this.#calls % CALLS_BEFORE_YIELD === 0) await nextTurn();
    this.wrote ||= !isSelect(strings);
    return this.#live().get<Row>(strings, values);
  }

  async run(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number> {
    if (++this.#calls % CALLS_BEFORE_YIELD === 0) await nextTurn();
    this.wrote = true;
    return this.#live().run(strings, values);
  }

  async insert(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number> {
    if (++this.#calls % CALLS_BEFORE_YIELD === 0) await nextTurn();
    this.wrote = true;
    return this.#live().insert(strings, values);
  }

  hint(topic: WakeTopic): void {
    if (!this.topics.includes(topic)) this.topics.push(topic);
  }

  afterCommit(act: () => void): void {
    this.acts.push(act);
  }

  #live(): Connection {
    if (!this.#connection) throw new Failure("store.transaction_too_slow", `transaction "${this.label}" has already ended`);
    return this.#connection;
  }
}

export function isSelect(strings: TemplateStringsArray): boolean {
  return /^\s*select\b/.test(strings[0] as string);
}

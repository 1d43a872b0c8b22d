import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Clock } from "../../kernel/clock.ts";
import { type BoundValue, compile, hasFragment, refuseNul, type SqlValue } from "../sql.ts";

const question = () => "?";
/** Texts that depend on their values (lists, pairs) come in few lengths; beyond this many the oldest is dropped. */
const DYNAMIC_STATEMENTS = 256;

export interface ConnectionOptions {
  readonly path: string;
  readonly readOnly: boolean;
  readonly clock: Clock;
}

/** One SQLite connection with its prepared statements. Everything is synchronous; who may use it when is the caller's affair. */
export class Connection {
  readonly db: DatabaseSync;
  readonly #byTemplate = new Map<TemplateStringsArray, StatementSync>();
  readonly #controls = new Map<string, StatementSync>();
  readonly #byText = new Map<string, StatementSync>();

  constructor(options: ConnectionOptions) {
    this.db = new DatabaseSync(options.path, { readOnly: options.readOnly, timeout: 20 });
    // `now_ms()` is the database's clock: on PostgreSQL a function of the schema, here the clock of the machine that has the file.
    this.db.function("now_ms", () => options.clock.now());
    this.db.exec("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;");
  }

  all<Row>(strings: TemplateStringsArray, values: readonly SqlValue[]): Row[] {
    if (hasFragment(values)) {
      const { statement, bound } = this.#dynamic(strings, values);
      return statement.all(...bound) as Row[];
    }
    refuseNul(values);
    return this.#fixed(strings).all(...(values as BoundValue[])) as Row[];
  }

  get<Row>(strings: TemplateStringsArray, values: readonly SqlValue[]): Row | undefined {
    if (hasFragment(values)) {
      const { statement, bound } = this.#dynamic(strings, values);
      return statement.get(...bound) as Row | undefined;
    }
    refuseNul(values);
    return this.#fixed(strings).get(...(values as BoundValue[])) as Row | undefined;
  }

  run(strings: TemplateStringsArray, values: readonly SqlValue[]): number {
    if (hasFragment(values)) {
      const { statement, bound } = this.#dynamic(strings, values);
      return Number(statement.run(...bound).changes);
    }
    refuseNul(values);
    return Number(this.#fixed(strings).run(...(values as BoundValue[])).changes);
  }

  /**
   * The number of the row just inserted, as SQLite keeps it anyway: RETURNING gathers its rows in a table of its own and cost
   * 4 of the 10 µs that the insert of two rows needs.
   */
  insert(strings: TemplateStringsArray, values: readonly SqlValue[]): number {
    refuseNul(values);
    let statement = this.#byTemplate.get(strings);
    if (!statement) {
      statement = this.db.prepare(strings.join("?").replace(/\sreturning\s+\w+\s*$/, ""));
      this.#byTemplate.set(strings, statement);
    }
    return Number(statement.run(...(values as BoundValue[])).lastInsertRowid);
  }

  /** BEGIN, COMMIT and the like: prepared once, as they run for every operation. */
  control(text: string): void {
    let statement = this.#controls.get(text);
    if (!statement) {
      statement = this.db.prepare(text);
      this.#controls.set(text, statement);
    }
    statement.run();
  }

  close(): void {
    this.#controls.clear();
    this.#byTemplate.clear();
    this.#byText.clear();
    if (this.db.isOpen) this.db.close();
  }

  #fixed(strings: TemplateStringsArray): StatementSync {
    let statement = this.#byTemplate.get(strings);
    if (!statement) {
      statement = this.db.prepare(strings.join("?"));
      this.#byTemplate.set(strings, statement);
    }
    return statement;
  }

  #dynamic(strings: TemplateStringsArray, values: readonly SqlValue[]): { statement: StatementSync; bound: BoundValue[] } {
    const { text, values: bound } = compile(strings, values, question);
    let statement = this.#byText.get(text);
    if (!statement) {
      if (this.#byText.size >= DYNAMIC_STATEMENTS) this.#byText.delete(this.#byText.keys().next().value as string);
      statement = this.db.prepare(text);
      this.#byText.set(text, statement);
    }
    return { statement, bound };
  }
}

import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Clock } from "../../kernel/clock.ts";
import type { Lasts } from "../engine.ts";
import { type BoundValue, compile, hasFragment, refuseNul, type SqlValue } from "../sql.ts";

const question = () => "?";
/** Texts that depend on their values (lists, pairs) come in few lengths; beyond this many the oldest is dropped. */
const DYNAMIC_STATEMENTS = 256;

/**
 * A statement whose rows come as arrays and are made objects here: those that node:sqlite makes have no shape, and cost a third of
 * a point read.
 */
class Prepared {
  readonly statement: StatementSync;
  readonly #names: readonly string[];

  constructor(statement: StatementSync) {
    this.statement = statement;
    this.#names = statement.columns().map((column) => column.name);
    statement.setReturnArrays(true);
  }

  all<Row>(bound: readonly BoundValue[]): Row[] {
    const rows = this.statement.all(...bound) as unknown as BoundValue[][];
    return rows.map((row) => this.#object(row) as Row);
  }

  get<Row>(bound: readonly BoundValue[]): Row | undefined {
    const row = this.statement.get(...bound) as BoundValue[] | undefined;
    return row && (this.#object(row) as Row);
  }

  #object(row: readonly BoundValue[]): Record<string, BoundValue> {
    const record: Record<string, BoundValue> = {};
    const names = this.#names;
    for (let index = 0; index < names.length; index++) record[names[index] as string] = row[index] as BoundValue;
    return record;
  }
}

export interface ConnectionOptions {
  readonly path: string;
  readonly readOnly: boolean;
  readonly clock: Clock;
}

/** One SQLite connection with its prepared statements. Everything is synchronous; who may use it when is the caller's affair. */
export class Connection {
  readonly db: DatabaseSync;
  readonly #byTemplate = new Map<TemplateStringsArray, Prepared>();
  readonly #controls = new Map<string, StatementSync>();
  readonly #byText = new Map<string, Prepared>();
  #changes: Prepared | undefined;
  /** As a writer is opened. */
  #lasts: Lasts = "at once";

  constructor(options: ConnectionOptions) {
    this.db = new DatabaseSync(options.path, { readOnly: options.readOnly, timeout: 20 });
    // `now_ms()` is the database's clock: on PostgreSQL a function of the schema, here the clock of the machine that has the file.
    this.db.function("now_ms", () => options.clock.now());
    this.db.exec("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;");
  }

  all<Row>(strings: TemplateStringsArray, values: readonly SqlValue[]): Row[] {
    if (hasFragment(values)) {
      const { statement, bound } = this.#dynamic(strings, values);
      return statement.all<Row>(bound);
    }
    refuseNul(values);
    return this.#fixed(strings).all<Row>(values as BoundValue[]);
  }

  get<Row>(strings: TemplateStringsArray, values: readonly SqlValue[]): Row | undefined {
    if (hasFragment(values)) {
      const { statement, bound } = this.#dynamic(strings, values);
      return statement.get<Row>(bound);
    }
    refuseNul(values);
    return this.#fixed(strings).get<Row>(values as BoundValue[]);
  }

  run(strings: TemplateStringsArray, values: readonly SqlValue[]): number {
    if (hasFragment(values)) {
      const { statement, bound } = this.#dynamic(strings, values);
      return Number(statement.statement.run(...bound).changes);
    }
    refuseNul(values);
    return Number(this.#fixed(strings).statement.run(...(values as BoundValue[])).changes);
  }

  /**
   * The number of the row just inserted, as SQLite keeps it anyway: RETURNING gathers its rows in a table of its own and cost
   * 4 of the 10 µs that the insert of two rows needs.
   */
  insert(strings: TemplateStringsArray, values: readonly SqlValue[]): number {
    refuseNul(values);
    let statement = this.#byTemplate.get(strings);
    if (!statement) {
      statement = this.#prepare(strings.join("?").replace(/\sreturning\s+\w+\s*$/, ""));
      this.#byTemplate.set(strings, statement);
    }
    return Number(statement.statement.run(...(values as BoundValue[])).lastInsertRowid);
  }

  /**
   * Whether the next commits are followed by an fsync. One of the write-ahead log makes everything last that was written to it before.
   * The pragma acts when it is prepared, and not inside a transaction.
   */
  syncs(lasts: Lasts): void {
    if (lasts === this.#lasts) return;
    this.db.exec(lasts === "at once" ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    this.#lasts = lasts;
  }

  /** A number that is another one as soon as a row was written. */
  get changes(): number {
    this.#changes ??= new Prepared(this.db.prepare("select total_changes() as made"));
    return this.#changes.get<{ made: number }>([])?.made as number;
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
    this.#changes = undefined;
    this.#byTemplate.clear();
    this.#byText.clear();
    if (this.db.isOpen) this.db.close();
  }

  #fixed(strings: TemplateStringsArray): Prepared {
    let statement = this.#byTemplate.get(strings);
    if (!statement) {
      statement = this.#prepare(strings.join("?"));
      this.#byTemplate.set(strings, statement);
    }
    return statement;
  }

  /** SQLite makes its plan by the value of `limit ?`, and so anew whenever one is bound: every time. It does not look into an expression. */
  #prepare(text: string): Prepared {
    return new Prepared(this.db.prepare(text.replace(/\blimit \?/g, "limit +?")));
  }

  #dynamic(strings: TemplateStringsArray, values: readonly SqlValue[]): { statement: Prepared; bound: BoundValue[] } {
    const { text, values: bound } = compile(strings, values, question);
    let statement = this.#byText.get(text);
    if (!statement) {
      if (this.#byText.size >= DYNAMIC_STATEMENTS) this.#byText.delete(this.#byText.keys().next().value as string);
      statement = this.#prepare(text);
      this.#byText.set(text, statement);
    }
    return { statement, bound };
  }
}

import { Failure } from "../kernel/failure.ts";

/**
 * SQL as tagged templates: values are always bound, never pasted; the template's own array is the key of the statement cache.
 * Rooms write the subset that both databases share; what differs is a fragment of the dialect.
 */
export type SqlValue = null | number | string | Uint8Array | SqlFragment;
export type BoundValue = null | number | string | Uint8Array;

/** PostgreSQL has no place for NUL in a text; refused on both databases alike, so that a home can move between them. */
export function refuseNul(values: readonly SqlValue[]): void {
  for (const value of values) {
    if (typeof value === "string" && value.includes("\0")) throw new Failure("request.malformed", "a text contains the character NUL");
  }
}

export class SqlFragment {
  readonly strings: readonly string[];
  readonly values: readonly SqlValue[];

  constructor(strings: readonly string[], values: readonly SqlValue[]) {
    this.strings = strings;
    this.values = values;
  }
}

export function sql(strings: TemplateStringsArray, ...values: SqlValue[]): SqlFragment {
  return new SqlFragment(strings, values);
}

/** Text that is code, not data. Only for constants written in this repository. */
export function code(text: string): SqlFragment {
  return new SqlFragment([text], []);
}

/** `(a, b, c)` for IN. An empty list matches nothing on both databases. */
export function list(values: readonly BoundValue[]): SqlFragment {
  if (values.length === 0) return code("(null)");
  const strings = values.map((_, index) => (index === 0 ? "(" : ", "));
  return new SqlFragment([...strings, ")"], values);
}

/** `(values (cast(a as bigint), cast(b as bigint)), …)` for matching pairs of numbers. */
export function pairs(rows: readonly (readonly [number, number])[]): SqlFragment {
  const strings: string[] = [];
  const values: number[] = [];
  for (const [first, second] of rows) {
    strings.push(strings.length === 0 ? "(values (cast(" : " as bigint)), (cast(", " as bigint), cast(");
    values.push(first, second);
  }
  return new SqlFragment([...strings, " as bigint)))"], values);
}

export interface CompiledSql {
  readonly text: string;
  readonly values: BoundValue[];
  /** False when a fragment was inlined: the text then depends on the values, and the template is no key for it. */
  readonly constant: boolean;
}

export function compile(strings: readonly string[], values: readonly SqlValue[], placeholder: (index: number) => string): CompiledSql {
  const bound: BoundValue[] = [];
  let constant = true;
  const render = (parts: readonly string[], inner: readonly SqlValue[]): string => {
    let text = parts[0] ?? "";
    for (let index = 0; index < inner.length; index++) {
      const value = inner[index] as SqlValue;
      if (value instanceof SqlFragment) {
        constant = false;
        text += render(value.strings, value.values);
      } else {
        bound.push(value);
        text += placeholder(bound.length);
      }
      text += parts[index + 1] ?? "";
    }
    return text;
  };
  const text = render(strings, values);
  refuseNul(bound);
  return { text, values: bound, constant };
}

export function hasFragment(values: readonly SqlValue[]): boolean {
  for (const value of values) if (value instanceof SqlFragment) return true;
  return false;
}

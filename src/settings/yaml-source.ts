import { Alias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from "yaml";
import type { Failure } from "../kernel/failure.ts";
import { type ConfigProblem, configFailure } from "./config-problem.ts";

const MAX_BYTES = 4 * 1024 * 1024;
const MAX_ALIASES = 100;
/** Aliases of aliases multiply, and one inside its own anchor never ends: these bound what they may come to. */
const MAX_VALUES = 200_000;
const MAX_DEPTH = 100;
const NAME = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

export type ConfigPath = readonly (string | number)[];

/** Where something stands in the config file. */
export interface Origin {
  readonly line: number;
  readonly column: number;
}

interface Place {
  readonly key: number;
  readonly value: number;
}

/** A YAML file as plain values, and where each of them stands in it. */
export interface YamlSource {
  readonly value: unknown;
  /** Where the value stands; of a key that has none, where the nearest thing around it does. */
  originOf(path: ConfigPath): Origin;
  /** Where the key itself stands. */
  originOfKey(path: ConfigPath): Origin;
}

/** Reads untrusted text within bounds: size, aliases, nesting, and no key that would reach an object's prototype. */
export function readYaml(text: string, file: string, lookUp: (name: string) => string | undefined): YamlSource {
  const lines = new LineCounter();
  const at = (offset: number): Origin => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const refuse = (offset: number, message: string, path: ConfigPath = []): Failure =>
    configFailure([{ severity: "error", code: "config.malformed", file, ...at(offset), path: path.join("."), message, fix: "" }]);

  if (Buffer.byteLength(text) > MAX_BYTES) throw refuse(0, `the file is larger than ${MAX_BYTES / 1024} KiB`);
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length > 0) {
    throw configFailure(
      wrong.map(
        (error): ConfigProblem => ({
          severity: "error",
          code: "config.malformed",
          file,
          ...at(error.pos[0]),
          path: "",
          message: `not valid YAML: ${error.message}`,
          fix: "",
        }),
      ),
    );
  }
  let aliases = 0;
  visit(document, {
    Alias: (_key, node) => {
      if (++aliases > MAX_ALIASES) throw refuse(node.range?.[0] ?? 0, `more than ${MAX_ALIASES} aliases`);
    },
  });

  const places = new Map<string, Place>();
  let values = 0;
  const convert = (node: Node | null, path: ConfigPath, key: number): unknown => {
    const start = node?.range?.[0] ?? key;
    places.set(JSON.stringify(path), { key, value: start });
    if (++values > MAX_VALUES) throw refuse(start, `more than ${MAX_VALUES} values`);
    if (path.length > MAX_DEPTH) throw refuse(start, "values are nested too deeply");
    if (node instanceof Alias) {
      const target = node.resolve(document);
      if (!target) throw refuse(start, `there is no anchor &${node.source}`, path);
      return convert(target, path, key);
    }
    if (isMap(node)) return convertMap(node, path);
    if (isSeq(node)) return node.items.map((item, index) => convert(item as Node | null, [...path, index], start));
    if (!isScalar(node)) return null;
    if (typeof node.value === "string") return substitute(node.value, start, node.range?.[2] ?? start, path);
    if (node.value !== null && typeof node.value === "object") throw refuse(start, "values of this tag are not supported", path);
    return node.value;
  };
  const convertMap = (node: { items: readonly { key: unknown; value: unknown }[] }, path: ConfigPath): Record<string, unknown> => {
    const record: Record<string, unknown> = {};
    for (const { key, value } of node.items) {
      const start = (key as Node | null)?.range?.[0] ?? 0;
      if (!isScalar(key)) throw refuse(start, "a key must be plain text", path);
      const name = String(key.value);
      if (name === "__proto__") throw refuse(start, "`__proto__` cannot be a key", path);
      record[name] = convert(value as Node | null, [...path, name], start);
    }
    return record;
  };
  const substitute = (value: string, start: number, end: number, path: ConfigPath): string =>
    value.replace(NAME, (written, name: string) => {
      const found = lookUp(name);
      if (found !== undefined) return found;
      const offset = text.indexOf(written, start);
      throw refuse(offset >= 0 && offset < end ? offset : start, `${written} is not set in the environment or in .env`, path);
    });

  const value = convert(document.contents, [], 0);
  const placeOf = (path: ConfigPath): Place => {
    for (let length = path.length; length >= 0; length--) {
      const place = places.get(JSON.stringify(path.slice(0, length)));
      if (place) return place;
    }
    return { key: 0, value: 0 };
  };
  return { value, originOf: (path) => at(placeOf(path).value), originOfKey: (path) => at(placeOf(path).key) };
}

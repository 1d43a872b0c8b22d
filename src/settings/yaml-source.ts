import { Alias, type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type Scalar, visit } from "yaml";
import { type ConfigPath, configFailure, errorAt, type Finding, type Origin } from "./config-problem.ts";
import { decodeNames, encodeNames, reservedCharacterIn, substituteNames } from "./names-in-yaml.ts";

const MAX_BYTES = 4 * 1024 * 1024;
const MAX_ALIASES = 100;
/** Aliases of aliases multiply, and one inside its own anchor never ends: these bound what they may come to. */
const MAX_VALUES = 200_000;
const MAX_DEPTH = 100;
/** Whatever looks up a key in an object by a name from outside must not find the language's own. */
const FORBIDDEN_KEYS = ["__proto__", "constructor", "prototype"];
/** Where a number stands for an id: what is written counts, not what it is worth. */
const IDS_BELOW = ["bindings", "channels", "owners", "identities"];
const WHOLE_NUMBER = /^[-+]?(\d[\d_]*|0x[0-9a-f]+|0o[0-7]+|\d+(\.\d*)?e[-+]?\d+)$/i;

interface Place {
  readonly key: number;
  readonly value: number;
}

/** A text as it is written, where `${NAME}` was replaced in it. */
export interface Substitution {
  readonly written: string;
  readonly names: readonly (readonly [name: string, value: string])[];
}

/** A YAML or JSON file as plain values, and where each of them stands in it. */
export interface YamlSource {
  readonly value: unknown;
  /** What is wrong with single values; what makes the whole file unreadable is thrown. */
  readonly findings: readonly Finding[];
  /** What was replaced at this place, or undefined. */
  substitutionAt(path: ConfigPath): Substitution | undefined;
  /** Where the value stands; of a key that has none, where the nearest thing around it does. */
  originOf(path: ConfigPath): Origin;
  /** Where the key itself stands. */
  originOfKey(path: ConfigPath): Origin;
  /** Whether the file itself says this, rather than something around it. */
  isWritten(path: ConfigPath): boolean;
}

/** Reads untrusted text within bounds: size, aliases, nesting, and no key that would reach an object's prototype. */
export function readYaml(text: string, file: string, lookUp: (name: string) => string | undefined): YamlSource {
  const lines = new LineCounter();
  const at = (offset: number): Origin => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const refusal = (offset: number, code: string, message: string, fix: string, path: ConfigPath = []) =>
    configFailure([{ severity: "error", code, file, ...at(offset), path: path.join("."), message, fix }]);

  if (Buffer.byteLength(text) > MAX_BYTES)
    throw refusal(0, "config.too_large", `the file is larger than ${MAX_BYTES / 1024} KiB`, "Move long texts into SOUL.md files.");
  const document = parse(text, file, lines, at);
  let aliases = 0;
  visit(document, {
    Alias: (_key, node) => {
      if (++aliases <= MAX_ALIASES) return;
      throw refusal(node.range?.[0] ?? 0, "config.too_large", `more than ${MAX_ALIASES} aliases`, "Write the values out.");
    },
  });

  const findings: Finding[] = [];
  const places = new Map<string, Place>();
  const substitutions = new Map<string, Substitution>();
  const targets = new Map<Alias, Node>();
  let values = 0;
  const convert = (node: Node | null, path: ConfigPath, key: number): unknown => {
    const start = node?.range?.[0] ?? key;
    places.set(JSON.stringify(path), { key, value: start });
    if (++values > MAX_VALUES) throw refusal(start, "config.too_large", `more than ${MAX_VALUES} values`, "Write fewer of them.");
    if (path.length > MAX_DEPTH) throw refusal(start, "config.too_large", "values are nested too deeply", "Write them flatter.");
    if (node instanceof Alias) {
      // Each look goes through the whole document, and aliases of aliases are met very often.
      const target = targets.get(node) ?? node.resolve(document);
      if (target) targets.set(node, target);
      if (!target) throw refusal(start, "config.malformed", `there is no anchor &${decodeNames(node.source)}`, "Name an anchor.", path);
      return convert(target, path, key);
    }
    if (isMap(node)) return convertMap(node, path);
    if (isSeq(node)) return node.items.map((item, index) => convert(item as Node | null, [...path, index], start));
    return isScalar(node) ? convertScalar(node, path, start) : null;
  };
  const convertMap = (node: { items: readonly { key: unknown; value: unknown }[] }, path: ConfigPath): Record<string, unknown> => {
    const record: Record<string, unknown> = {};
    for (const { key, value } of node.items) {
      const start = (key as Node | null)?.range?.[0] ?? 0;
      if (!isScalar(key)) throw refusal(start, "config.malformed", "a key must be plain text", "Write a word and a colon.", path);
      const name = decodeNames(String(key.value));
      if (FORBIDDEN_KEYS.includes(name))
        throw refusal(start, "config.forbidden_key", `\`${name}\` cannot be a key`, "Choose another name.", path);
      if (name !== String(key.value))
        throw refusal(
          start,
          "config.malformed",
          "names such as $" + "{NAME} are replaced in values, not in keys",
          "Write the key out.",
          path,
        );
      if (Object.hasOwn(record, name))
        throw refusal(start, "config.malformed", `the key "${name}" stands here twice`, "Remove one of them.", [...path, name]);
      record[name] = convert(value as Node | null, [...path, name], start);
    }
    return record;
  };
  const convertScalar = (node: Scalar, path: ConfigPath, start: number): unknown => {
    const { value, source } = node;
    if (typeof value === "string") return substitute(value, start, node.range?.[2] ?? start, path);
    if (typeof value === "number" && losesDigits(value, source ?? String(value), path))
      findings.push(
        errorAt(
          path,
          "config.lossy_number",
          `as a number, ${source} becomes ${value}`,
          `Write it in quotes: "${source}"; a plain number without signs it does not need.`,
        ),
      );
    if (typeof value === "bigint" || (value !== null && typeof value === "object"))
      throw refusal(start, "config.malformed", "values of this tag are not supported", "Remove the tag.", path);
    return value;
  };
  const substitute = (encoded: string, start: number, end: number, path: ConfigPath): string => {
    const names: [string, string][] = [];
    const substituted = substituteNames(encoded, (name) => {
      const found = lookUp(name);
      if (found === undefined) findings.push(unset(name, start, end, path));
      else names.push([name, found]);
      return found ?? `\${${name}}`;
    });
    if (substituted !== encoded) substitutions.set(JSON.stringify(path), { written: decodeNames(encoded), names });
    return substituted;
  };
  const unset = (name: string, start: number, end: number, path: ConfigPath): Finding => {
    const written = `\${${name}}`;
    const offset = text.indexOf(written, start);
    const message = `${written} is not set in the environment or in .env`;
    const fix = `Add ${name}=… to .env in the home, or write the value here.`;
    return errorAt(path, "config.unset_name", message, fix, at(offset >= 0 && offset < end ? offset : start));
  };

  const value = convert(document.contents, [], 0);
  const placeOf = (path: ConfigPath): Place => {
    for (let length = path.length; length >= 0; length--) {
      const place = places.get(JSON.stringify(path.slice(0, length)));
      if (place) return place;
    }
    return { key: 0, value: 0 };
  };
  return {
    value,
    findings,
    substitutionAt: (path) => substitutions.get(JSON.stringify(path)),
    originOf: (path) => at(placeOf(path).value),
    originOfKey: (path) => at(placeOf(path).key),
    isWritten: (path) => places.has(JSON.stringify(path)),
  };
}

function parse(text: string, file: string, lineCounter: LineCounter, at: (offset: number) => Origin): Document.Parsed {
  const malformed = (offset: number, message: string, fix: string) =>
    ({ severity: "error", code: "config.malformed", file, ...at(offset), path: "", message, fix }) as const;
  const reserved = reservedCharacterIn(text);
  if (reserved >= 0) {
    for (let start = 0; start >= 0 && start <= reserved; start = text.indexOf("\n", start) + 1 || -1) lineCounter.addNewLine(start);
    throw configFailure([malformed(reserved, "the characters U+EFF0 to U+EFF2 cannot be used", "Remove the character.")]);
  }
  const document = parseDocument(encodeNames(text), { lineCounter, prettyErrors: false });
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length === 0) return document;
  const fix = "Correct the line; texts with signs such as : # { [ need quotes.";
  throw configFailure(wrong.map((error) => malformed(error.pos[0], `not valid YAML: ${decodeNames(error.message)}`, fix)));
}

/** An id of many digits, or with zeros before it, is not what it was once it is a number. */
function losesDigits(value: number, source: string, path: ConfigPath): boolean {
  if (String(value) === source) return false;
  return WHOLE_NUMBER.test(source) || IDS_BELOW.includes(String(path[0]));
}

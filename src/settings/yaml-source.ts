import { Alias, type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type Scalar } from "yaml";
import { type ConfigPath, configFailure, errorAt, type Finding, type Origin } from "./config-problem.ts";
import { decodeNames, encodeNames, reservedCharacterIn, substituteNames } from "./names-in-yaml.ts";
import { isNearSecret, isSecretPosition } from "./secret-positions.ts";
import { yamlMistakes } from "./yaml-errors.ts";

const MAX_BYTES = 4 * 1024 * 1024;
const MAX_ALIASES = 100;
/** Aliases of aliases multiply, and one inside its own anchor never ends: these bound what they may come to. */
const MAX_VALUES = 200_000;
const MAX_DEPTH = 100;
/** Whatever looks up a key in an object by a name from outside must not find the language's own. */
const FORBIDDEN_KEYS = ["__proto__", "constructor", "prototype"];
/** Where a number stands for an id: what is written counts, not what it is worth. */
const IDS_BELOW = ["bindings", "channels", "owners", "identities"];
const NAME_AS_KEY = "names such as $" + "{NAME} are replaced in values, not in keys";
const WHOLE_NUMBER = /^[-+]?(\d[\d_]*|0x[0-9a-f]+|0o[0-7]+|\d+(\.\d*)?e[-+]?\d+)$/i;

/** Where one value stands; linked to what is around it, since most files are sound and nobody asks for most paths. */
interface Place {
  readonly around: Place | null;
  readonly part: string | number;
  readonly depth: number;
  /** Offsets of the key and of the value, and where the value ends. */
  readonly key: number;
  readonly value: number;
  readonly end: number;
  inner: Map<string | number, Place> | null;
}

/** A text as it is written, where `${NAME}` was replaced in it. */
export interface Substitution {
  readonly written: string;
  readonly names: readonly (readonly [name: string, value: string])[];
}

/** A YAML or JSON file as plain values, and where each of them stands in it. */
export interface YamlSource {
  readonly value: unknown;
  /** Secrets below keys that stand in their map a second time: nobody uses them, and nobody may see them. */
  readonly repeated: readonly (readonly [name: string, value: string])[];
  /** What is wrong with single values; what makes the whole file unreadable is thrown. */
  readonly findings: readonly Finding[];
  /** What was replaced at this place, or undefined. */
  substitutionAt(path: ConfigPath): Substitution | undefined;
  /** Everything that was replaced anywhere. */
  substituted(): Substitution["names"];
  /** The value as the file spells it, with quotes and indentation; undefined where the file says nothing. */
  spellingAt(path: ConfigPath): string | undefined;
  /** Where the value stands; of a key that has none, where the nearest thing around it does. */
  originOf(path: ConfigPath): Origin;
  /** Where the key itself stands. */
  originOfKey(path: ConfigPath): Origin;
  /** Whether the file itself says this, rather than something around it. */
  isWritten(path: ConfigPath): boolean;
}

/** What was found in a text, as plain data: it can be handed from one thread to another. */
export interface ParsedYaml extends Pick<YamlSource, "value" | "repeated" | "findings"> {
  readonly text: string;
  readonly lineStarts: readonly number[];
  readonly top: Place | undefined;
  readonly substitutions: ReadonlyMap<Place, Substitution>;
}

/** Null: names are no names, and `${NAME}` is text like any other. */
export type LookUp = ((name: string) => string | undefined) | null;

export function readYaml(text: string, file: string, lookUp: LookUp): YamlSource {
  return yamlSource(parseYaml(text, file, lookUp));
}

/** Reads untrusted text within bounds: size, aliases, nesting, and no key that would reach an object's prototype. */
export function parseYaml(text: string, file: string, lookUp: LookUp): ParsedYaml {
  const lines = new LineCounter();
  const at = (offset: number): Origin => originAt(lines, offset);
  const refusal = (offset: number, code: string, message: string, fix: string, path: ConfigPath = []) =>
    configFailure([{ severity: "error", code, file, ...at(offset), path: path.join("."), message, fix }]);

  if (Buffer.byteLength(text) > MAX_BYTES)
    throw refusal(0, "config.too_large", `the file is larger than ${MAX_BYTES / 1024} KiB`, "Move long texts into SOUL.md files.");
  const document = parse(text, file, lines, at);
  const findings: Finding[] = [];
  const repeated: [name: string, value: string][] = [];
  let repeating = 0;
  const substitutions = new Map<Place, Substitution>();
  const targets = new Map<Alias, Node>();
  let values = 0;
  const convert = (node: Node | null, around: Place | null, part: string | number, key: number): unknown => {
    const start = node?.range?.[0] ?? key;
    const place: Place = { around, part, depth: (around?.depth ?? -1) + 1, key, value: start, end: node?.range?.[1] ?? start, inner: null };
    if (around) {
      around.inner ??= new Map();
      around.inner.set(part, place);
    } else top = place;
    if (++values > MAX_VALUES) throw refusal(start, "config.too_large", `more than ${MAX_VALUES} values`, "Write fewer of them.");
    if (place.depth > MAX_DEPTH) throw refusal(start, "config.too_large", "values are nested too deeply", "Write them flatter.");
    if (node instanceof Alias) return convert(targetOf(node, place), around, part, key);
    if (isMap(node)) return convertMap(node, place);
    if (isSeq(node)) return node.items.map((item, index) => convert(item as Node | null, place, index, start));
    const scalar = isScalar(node) ? convertScalar(node, place) : null;
    if (repeating > 0 && scalar !== null && isNearSecret(pathOf(place)))
      repeated.push([String(part), String(scalar)], [String(part), text.slice(start, place.end)]);
    return scalar;
  };
  /** Each look goes through the whole document, and aliases of aliases are met very often. */
  const targetOf = (alias: Alias, place: Place): Node | null => {
    const target = targets.get(alias) ?? alias.resolve(document);
    if (!target) {
      const message = `there is no anchor &${decodeNames(alias.source)}`;
      findings.push(errorAt(pathOf(place), "config.malformed", message, "Name an anchor, or put the text in quotes.", at(place.value)));
      return null;
    }
    targets.set(alias, target);
    if (targets.size > MAX_ALIASES)
      throw refusal(place.value, "config.too_large", `more than ${MAX_ALIASES} aliases`, "Write the values out.");
    return target;
  };
  const convertMap = (node: { items: readonly { key: unknown; value: unknown }[] }, place: Place): Record<string, unknown> => {
    const record: Record<string, unknown> = {};
    for (const { key, value } of node.items) {
      const start = (key as Node | null)?.range?.[0] ?? 0;
      const refuse = (code: string, message: string, fix: string) => refusal(start, code, message, fix, pathOf(place));
      if (!isScalar(key)) throw refuse("config.malformed", "a key must be plain text", "Write a word and a colon.");
      const name = decodeNames(String(key.value));
      if (FORBIDDEN_KEYS.includes(name)) throw refuse("config.forbidden_key", `\`${name}\` cannot be a key`, "Choose another name.");
      const path = (): ConfigPath => [...pathOf(place), name];
      const isRepeated = Object.hasOwn(record, name);
      if (lookUp !== null && name !== String(key.value))
        findings.push(errorAt(path(), "config.malformed", NAME_AS_KEY, "Write the key out.", at(start)));
      if (isRepeated) {
        const first = at(place.inner?.get(name)?.key ?? 0);
        const fix = `Remove it here or in line ${first.line}.`;
        findings.push(errorAt(path(), "config.malformed", `the key "${name}" stands here twice`, fix, at(start)));
      }
      if (isRepeated) {
        repeating++;
        convert(value as Node | null, { ...place, inner: null }, name, start);
        repeating--;
      } else record[name] = convert(value as Node | null, place, name, start);
    }
    return record;
  };
  const convertScalar = (node: Scalar, place: Place): unknown => {
    const { value, source } = node;
    if (typeof value === "string") return substitute(value, node.range?.[2] ?? place.value, place);
    if (typeof value === "number" && losesDigits(value, source ?? String(value), place)) {
      // A token of digits is a text that nobody put in quotes; and nothing of it may be quoted in a message.
      if (source !== undefined && isSecretPosition(pathOf(place))) return source;
      const fix = `Write it in quotes: "${source}"; a plain number without signs it does not need.`;
      findings.push(errorAt(pathOf(place), "config.lossy_number", `as a number, ${source} becomes ${value}`, fix));
    }
    if (typeof value === "bigint" || (value !== null && typeof value === "object"))
      throw refusal(place.value, "config.malformed", "values of this tag are not supported", "Remove the tag.", pathOf(place));
    return value;
  };
  const substitute = (encoded: string, end: number, place: Place): string => {
    if (lookUp === null) return decodeNames(encoded);
    const names: [string, string][] = [];
    const substituted = substituteNames(encoded, (name) => {
      const found = lookUp(name);
      if (found === undefined) findings.push(unset(name, end, place));
      else names.push([name, found]);
      return found ?? `\${${name}}`;
    });
    if (substituted !== encoded) substitutions.set(place, { written: decodeNames(encoded), names });
    return substituted;
  };
  const unset = (name: string, end: number, place: Place): Finding => {
    const written = `\${${name}}`;
    const offset = text.indexOf(written, place.value);
    const message = `${written} is not set in the environment or in .env`;
    const fix = `Add ${name}=… to .env in the home, or write the value here.`;
    return errorAt(pathOf(place), "config.unset_name", message, fix, at(offset >= 0 && offset < end ? offset : place.value));
  };

  let top: Place | undefined;
  const value = convert(document.contents, null, "", 0);
  return { text, lineStarts: lines.lineStarts, value, repeated, findings, top, substitutions };
}

export function yamlSource({ text, lineStarts, value, repeated, findings, top, substitutions }: ParsedYaml): YamlSource {
  const lines = Object.assign(new LineCounter(), { lineStarts });
  const at = (offset: number): Origin => originAt(lines, offset);
  const nearest = (path: ConfigPath): { readonly place: Place | undefined; readonly isItself: boolean } => {
    let place = top;
    for (const part of path) {
      const inner = place?.inner?.get(part);
      if (!inner) return { place, isItself: false };
      place = inner;
    }
    return { place, isItself: place !== undefined };
  };
  return {
    value,
    repeated,
    findings,
    substitutionAt: (path) => {
      const { place, isItself } = nearest(path);
      return isItself && place ? substitutions.get(place) : undefined;
    },
    substituted: () => [...substitutions.values()].flatMap(({ names }) => names),
    spellingAt: (path) => {
      const { place, isItself } = nearest(path);
      return isItself && place ? text.slice(place.value, place.end) : undefined;
    },
    originOf: (path) => at(nearest(path).place?.value ?? 0),
    originOfKey: (path) => at(nearest(path).place?.key ?? 0),
    isWritten: (path) => nearest(path).isItself,
  };
}

function originAt(lines: LineCounter, offset: number): Origin {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function pathOf({ around, part }: Place): ConfigPath {
  return around === null ? [] : [...pathOf(around), part];
}

function parse(text: string, file: string, lineCounter: LineCounter, at: (offset: number) => Origin): Document.Parsed {
  const malformed = (offset: number, message: string, fix: string) =>
    ({ severity: "error", code: "config.malformed", file, ...at(offset), path: "", message, fix }) as const;
  const reserved = reservedCharacterIn(text);
  if (reserved >= 0) {
    for (let start = 0; start >= 0 && start <= reserved; start = text.indexOf("\n", start) + 1 || -1) lineCounter.addNewLine(start);
    throw configFailure([malformed(reserved, "the characters U+EFF0 to U+EFF2 cannot be used", "Remove the character.")]);
  }
  const document = parseDocument(encodeNames(text), { lineCounter, prettyErrors: false, uniqueKeys: false });
  const mistakes = yamlMistakes(document, (offset) => at(offset).line);
  if (mistakes.length === 0) return document;
  throw configFailure(mistakes.map(({ offset, message, fix }) => malformed(offset, message, fix)));
}

/** An id of many digits, or with zeros before it, is not what it was once it is a number. */
function losesDigits(value: number, source: string, place: Place): boolean {
  if (String(value) === source) return false;
  return WHOLE_NUMBER.test(source) || IDS_BELOW.includes(String(pathOf(place)[0]));
}

import { isDeepStrictEqual } from "node:util";
import { type Document, isMap, isScalar, isSeq, type Node, type Pair, parseDocument, type YAMLMap, type YAMLSeq } from "yaml";
import { Failure } from "../kernel/failure.ts";
import { decodeNames, encodeNames } from "./names-in-yaml.ts";
import { jsonStyle, pairLines, type Style, valueText, yamlStyle } from "./yaml-style.ts";

/** As the loader reads: digits are kept, and a key that stands twice is the mistake of the section it stands in. */
const READING = { intAsBigInt: true, uniqueKeys: false } as const;

type Path = readonly (string | number)[];

/** `set` gives a key its value, with the maps around it where they are missing; `append` adds to a list, likewise; `remove` needs no value. */
export interface Edit {
  readonly kind: "set" | "append" | "remove";
  readonly path: Path;
  readonly value: unknown;
}

/** One replacement in a text. */
interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/**
 * The text with these changes and not another byte changed: comments, order, blank lines, quotes and indentation are somebody's work.
 * Where such an insertion cannot be found, or does not come to the value that was asked for, the whole document is written anew, which
 * keeps comments and order, but not every blank.
 */
export function editYaml(text: string, edits: readonly Edit[]): string {
  return decodeNames(edits.reduce(editOnce, encodeNames(text)));
}

function editOnce(text: string, { kind, path, value }: Edit): string {
  const encoded = kind === "remove" ? null : (JSON.parse(encodeNames(JSON.stringify(value))) as unknown);
  const document = parse(text);
  const wanted = parse(text);
  change(wanted, kind, path, asRead(encoded));
  const splice = spliceFor(document, text, kind, path, encoded);
  if (splice) {
    const spliced = text.slice(0, splice.from) + splice.text + text.slice(splice.to);
    if (means(spliced, wanted)) return spliced;
  }
  const written = wanted.toString({ lineWidth: 0, flowCollectionPadding: true });
  if (means(written, wanted)) return written;
  throw new Failure("config.invalid", `${path.join(".")} cannot be changed by a program here`, { hint: "Edit the file by hand." });
}

/** A value as it comes out of a text that says it. */
function asRead(value: unknown): unknown {
  if (typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  if (Array.isArray(value)) return value.map(asRead);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, asRead(inner)]));
}

function means(text: string, wanted: Document): boolean {
  const document = parseDocument(text, READING);
  return document.errors.length === 0 && isDeepStrictEqual(document.toJS(), wanted.toJS());
}

function parse(text: string): Document {
  const document = parseDocument(text, READING);
  const [error] = document.errors;
  if (error) throw new Failure("config.invalid", `the config is not valid YAML: ${error.message.split("\n")[0]}`);
  return document;
}

function change(document: Document, kind: Edit["kind"], path: Path, value: unknown): void {
  if (kind === "remove") return void document.deleteIn(path);
  try {
    // `key:` with nothing after it is a map, or a list, that has nothing in it yet.
    for (let length = 1; length < path.length; length++)
      if (isEmpty(document.getIn(path.slice(0, length), true))) document.setIn(path.slice(0, length), document.createNode({}));
    if (kind === "set" || !isSeq(document.getIn(path))) document.setIn(path, document.createNode(kind === "set" ? value : [value]));
    else document.addIn(path, document.createNode(value));
  } catch (error) {
    throw new Failure("config.invalid", `${path.join(".")} cannot be changed by a program: something else stands there`, {
      cause: error,
      hint: "Edit the file by hand; an alias (*name) must be written out first.",
    });
  }
}

function spliceFor(document: Document, text: string, kind: Edit["kind"], path: Path, value: unknown): Splice | undefined {
  if (kind === "remove") return withoutSection(document, text, path);
  const style = isJson(text) ? jsonStyle(text) : yamlStyle(text);
  if (document.contents === null)
    return { from: text.length, to: text.length, text: onNewLine(text, style, pair(kind, path, value, style)) };
  let node: Node = document.contents;
  for (const [depth, key] of path.entries()) {
    if (!isMap(node)) return undefined;
    const found: Pair | undefined = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
    if (!found) {
      if (node.flow) return intoFlow(node, text, style, onOneLine(kind, path.slice(depth), value, style));
      const lines = pair(kind, path.slice(depth), value, style);
      // A section of the file stands by itself.
      return intoMap(node, text, style, depth === 0 && lines.length > 1 ? ["", ...lines] : lines);
    }
    const below = path.slice(depth + 1);
    if (isEmpty(found.value)) return underKey(found, text, style, kind, below, value);
    node = found.value as Node;
  }
  if (kind === "append") return isSeq(node) ? intoList(node, text, style, value) : undefined;
  return isScalar(node) && node.range ? { from: node.range[0], to: node.range[1], text: valueText(value, style) } : undefined;
}

/** A section of the file with its lines; whatever else is removed has no place of its own. */
function withoutSection({ contents }: Document, text: string, [key, ...below]: Path): Splice | undefined {
  if (!isMap(contents) || contents.flow || below.length > 0) return undefined;
  const found = contents.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
  const [from, to] = [(found?.key as Node | undefined)?.range?.[0], (found?.value as Node | null | undefined)?.range?.[2]];
  return from === undefined || to === undefined || columnOf(text, from) > 0 ? undefined : { from, to, text: "" };
}

/** A key and its value, as lines without indentation. */
function pair(kind: Edit["kind"], path: Path, value: unknown, style: Style): string[] {
  return pairLines(String(path[0]), around(kind, path, value), style);
}

function onOneLine(kind: Edit["kind"], path: Path, value: unknown, style: Style): string {
  return `${valueText(String(path[0]), style)}: ${valueText(around(kind, path, value), style)}`;
}

/** The value of the first key of the path, with the maps in it that are missing. */
function around(kind: Edit["kind"], [, ...below]: Path, value: unknown): unknown {
  return below.reduceRight<unknown>((inner, name) => ({ [name]: inner }), kind === "set" ? value : [value]);
}

/** `key:` with nothing after it. */
function underKey(found: Pair, text: string, style: Style, kind: Edit["kind"], below: Path, value: unknown): Splice | undefined {
  const key = found.key as Node;
  const at = (found.value as Node | null)?.range?.[0] ?? text.indexOf(":", key.range?.[1] ?? 0) + 1;
  if (!key.range || at <= 0) return undefined;
  if (below.length === 0) return { from: at, to: at, text: ` ${valueText(kind === "set" ? value : [value], style)}` };
  const indent = `${" ".repeat(columnOf(text, key.range[0]))}  `;
  const lines = pair(kind, below, value, style).map((line) => indent + line);
  return afterLine(text, at, style, lines);
}

function intoMap(map: YAMLMap, text: string, style: Style, lines: string[]): Splice | undefined {
  const first = (map.items[0]?.key as Node | undefined)?.range;
  const end = endOf(map.items.at(-1));
  if (!first || end === undefined) return undefined;
  const indent = " ".repeat(columnOf(text, first[0]));
  return afterLine(
    text,
    afterRemarks(text, end, indent.length),
    style,
    lines.map((line) => (line === "" ? "" : indent + line)),
  );
}

function intoList(list: YAMLSeq, text: string, style: Style, value: unknown): Splice | undefined {
  const item = valueText(value, style);
  const last = list.items.at(-1) as Node | undefined;
  if (list.flow) return intoFlow(list, text, style, item);
  if (!last?.range || !list.range) return undefined;
  return afterLine(text, last.range[1], style, [`${" ".repeat(columnOf(text, list.range[0]))}- ${item}`]);
}

/** Before the closing bracket: on a line of its own where the others have one. */
function intoFlow(node: YAMLMap | YAMLSeq, text: string, style: Style, item: string): Splice | undefined {
  if (!node.range) return undefined;
  const [open, close] = node.range;
  const first = node.items[0];
  const firstAt = ((isMap(node) ? (first as Pair | undefined)?.key : first) as Node | undefined)?.range?.[0];
  if (firstAt === undefined) return { from: open + 1, to: close - 1, text: ` ${item} ` };
  const last = node.items.at(-1);
  const end = isMap(node) ? endOf(last as Pair) : (last as Node).range?.[1];
  if (end === undefined) return undefined;
  if (!text.slice(open, firstAt).includes("\n")) return { from: end, to: end, text: `, ${item}` };
  const line = `${style.newLine}${" ".repeat(columnOf(text, firstAt))}${item}`;
  // What stands after the last one on its line, a comma or a remark, stays with it.
  const rest = /^[^\r\n]*(?=\r?\n)/.exec(text.slice(end, close))?.[0] ?? "";
  const hasComma = rest.trimStart().startsWith(",");
  return { from: end, to: end + rest.length, text: hasComma ? `${rest}${line},` : `,${rest}${line}` };
}

function afterLine(text: string, end: number, style: Style, lines: readonly string[]): Splice {
  const next = text[end - 1] === "\n" ? end : text.indexOf("\n", end) + 1;
  const at = next === 0 ? text.length : next;
  return { from: at, to: at, text: onNewLine(text.slice(0, at), style, lines) };
}

/** Comments that are indented further than the keys belong to what stands above them, mostly keys that somebody has put aside. */
function afterRemarks(text: string, end: number, column: number): number {
  const lineEnd = text[end - 1] === "\n" ? end : text.indexOf("\n", end) + 1;
  if (lineEnd === 0) return end;
  const remarks = new RegExp(`^(?:[ \\t]{${column + 1},}#[^\n]*(?:\n|$))+`).exec(text.slice(lineEnd));
  return remarks ? lineEnd + remarks[0].length : end;
}

function onNewLine(before: string, { newLine }: Style, lines: readonly string[]): string {
  return `${before === "" || before.endsWith("\n") ? "" : newLine}${lines.join(newLine)}${newLine}`;
}

function endOf(item: Pair | undefined): number | undefined {
  return (item?.value as Node | null | undefined)?.range?.[1] ?? (item?.key as Node | undefined)?.range?.[1];
}

function isEmpty(value: unknown): boolean {
  return value === null || (isScalar(value) && value.value === null && value.range !== undefined && value.range?.[0] === value.range?.[1]);
}

function columnOf(text: string, offset: number): number {
  return offset - (text.lastIndexOf("\n", offset - 1) + 1);
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

import { Failure } from "../../kernel/failure.ts";
import { didYouMean } from "../../kernel/nearest.ts";

/** What a template may name. `item` is there only in a `foreach`. */
export interface TemplateValues {
  readonly input: Readonly<Record<string, unknown>>;
  readonly item?: unknown;
}

const SLOT = /\{\{([^{}]*)\}\}/g;
const OPENED = /\{\{\s*(?:input|item)\b/g;
const NAME = /^\s*(input(?:\.[A-Za-z0-9_-]+)+|item(?:\.[A-Za-z0-9_-]+)*)\s*$/;

/** What a template is made of: texts, and names between them. */
interface Slot {
  readonly written: string;
  readonly offset: number;
  /** Null: nothing that a template can name. */
  readonly path: readonly string[] | null;
}

export interface TemplateProblem {
  readonly problem: string;
  readonly offset: number;
}

/** What is wrong with a template whatever the values; `isItem`: whether there is an `{{item}}`. */
export function templateProblems(template: string, isItem: boolean): TemplateProblem[] {
  // What is no slot keeps its place while the slots are blanked out.
  const rest = template.replace(SLOT, (slot) => " ".repeat(slot.length));
  const open = [...rest.matchAll(OPENED)].map(({ 0: written, index }) => ({ problem: `${written}… is never closed`, offset: index }));
  const named = slotsOf(template).flatMap(({ written, offset, path }) => {
    if (path === null) return [{ problem: `${written} names nothing: write {{input.<name>}} or {{item}}`, offset }];
    if (path[0] === "item" && !isItem) return [{ problem: `${written} stands in a step without \`foreach\``, offset }];
    return [];
  });
  return [...open, ...named];
}

/** A template may name one long text many times. */
const MAX_RENDERED = 1_000_000;

/**
 * Puts values in the place of `{{input.a.b}}`, `{{item}}` and `{{item.field}}`: texts as they are, everything else as JSON. Nothing is
 * evaluated, and what was put in is not looked at again. Throws `step.bad_template` for a name that is not there, for text
 * that cannot be stored, and for more than `max` characters.
 */
export function renderTemplate(template: string, values: TemplateValues, max = MAX_RENDERED): string {
  let length = template.length;
  return template.replace(SLOT, (written: string, inner: string) => {
    const text = textOf(namedValue(written, pathOf(inner), values));
    if (text.includes("\0") || !text.isWellFormed()) throw bad(`${written}: NUL or half a character cannot be part of it`);
    length += text.length - written.length;
    if (length > max) throw bad(`with ${written} it is longer than ${max} characters`);
    return text;
  });
}

function slotsOf(template: string): Slot[] {
  return [...template.matchAll(SLOT)].map((match) => ({ written: match[0], offset: match.index, path: pathOf(match[1] as string) }));
}

function pathOf(inner: string): string[] | null {
  return NAME.exec(inner)?.[1]?.split(".") ?? null;
}

function namedValue(written: string, path: readonly string[] | null, values: TemplateValues): unknown {
  if (path === null) throw bad(`${written} names nothing: write {{input.<name>}} or {{item}}`);
  const [root, ...rest] = path;
  if (root === "item" && !("item" in values)) throw bad(`${written} stands in a step without \`foreach\``);
  let value: unknown = root === "item" ? values.item : values.input;
  for (const [index, part] of rest.entries()) {
    const around = path.slice(0, index + 1).join(".");
    if (typeof value !== "object" || value === null) throw bad(`${written}: ${around} is no map`);
    if (!Object.hasOwn(value, part)) throw bad(`${written}: there is no ${part} in ${around}${didYouMean(part, Object.keys(value))}`);
    value = (value as Readonly<Record<string, unknown>>)[part];
  }
  return value;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "null");
}

function bad(message: string): Failure {
  return new Failure("step.bad_template", message);
}

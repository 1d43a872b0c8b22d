import type { z } from "zod";
import { configSchema } from "../contract/config.ts";
import type { ConfigPath } from "./config-problem.ts";

export type Schema = z.core.$ZodType;

interface Definition {
  readonly type: string;
  readonly innerType?: Schema;
  readonly in?: Schema;
  readonly options?: readonly Schema[];
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly valueType?: Schema;
  readonly element?: Schema;
}

const definitionOf = (schema: Schema): Definition => schema._zod.def as unknown as Definition;

/** Every form in which a value may be written: without defaults and transformations, unions taken apart. */
export function formsOf(schema: Schema): Schema[] {
  const { innerType, in: input, options } = definitionOf(schema);
  if (options) return options.flatMap(formsOf);
  const inner = innerType ?? input;
  return inner ? formsOf(inner) : [schema];
}

/** What may stand below a form: its named keys, `*` for any key of a record, `[]` for the entries of a list. */
export function partsOf(form: Schema): readonly (readonly [key: string, schema: Schema])[] {
  const { shape, valueType, element } = definitionOf(form);
  if (shape) return Object.entries(shape);
  if (valueType) return [["*", valueType]];
  return element ? [["[]", element]] : [];
}

/** The forms that the schema knows at this place; none where nothing may stand. */
export function formsAt(path: ConfigPath, schema: Schema = configSchema): Schema[] {
  let forms = formsOf(schema);
  for (const part of path)
    forms = forms.flatMap(partsOf).flatMap(([key, inner]) => (key === String(part) || isAny(key, part) ? formsOf(inner) : []));
  return forms;
}

function isAny(key: string, part: string | number): boolean {
  return (key === "*" && typeof part === "string") || (key === "[]" && /^\d+$/.test(String(part)));
}

/** The names of keys that may stand at this place. */
export function keysAt(path: ConfigPath, schema: Schema = configSchema): string[] {
  const names = formsAt(path, schema).flatMap((form) => Object.keys(definitionOf(form).shape ?? {}));
  return [...new Set(names)];
}

/** Whether any key may stand there, and its value is somebody's to name. */
export function takesAnyKey(path: ConfigPath): boolean {
  return formsAt(path).some((form) => definitionOf(form).valueType !== undefined);
}

type Schema = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 8;

/** A value that fits a JSON Schema, the same one every time: enough for whoever only needs the form. `words` stand where a text may. */
export function sampleValue(schema: unknown, words: string, depth = 0): unknown {
  if (typeof schema !== "object" || schema === null || depth > MAX_DEPTH) return words;
  const { const: only, enum: choices, default: preset, anyOf, oneOf, allOf, type } = schema as Schema;
  if (only !== undefined) return only;
  if (Array.isArray(choices)) return choices[0];
  if (preset !== undefined) return preset;
  for (const forms of [anyOf, oneOf]) if (Array.isArray(forms)) return sampleValue(forms[0], words, depth + 1);
  if (Array.isArray(allOf)) return sampleValue(Object.assign({}, ...allOf), words, depth + 1);
  switch (Array.isArray(type) ? type[0] : type) {
    case "object":
      return sampleObject(schema as Schema, words, depth);
    case "array":
      return Array.from({ length: Math.max(1, sizeOf(schema as Schema, "minItems", 1)) }, () =>
        sampleValue((schema as Schema).items, words, depth + 1),
      );
    case "number":
    case "integer":
      return Math.max(1, sizeOf(schema as Schema, "minimum", 1));
    case "boolean":
      return true;
    case "null":
      return null;
    case "string":
      return words
        .padEnd(sizeOf(schema as Schema, "minLength", 0), ".")
        .slice(0, sizeOf(schema as Schema, "maxLength", words.length + 100));
    default:
      return (schema as Schema).properties === undefined ? words : sampleObject(schema as Schema, words, depth);
  }
}

/** What must be there; where nothing must, everything. */
function sampleObject({ properties, required }: Schema, words: string, depth: number): Record<string, unknown> {
  const all = Object.entries((properties ?? {}) as Schema);
  const needed = Array.isArray(required) ? required : all.map(([name]) => name);
  return Object.fromEntries(all.flatMap(([name, inner]) => (needed.includes(name) ? [[name, sampleValue(inner, words, depth + 1)]] : [])));
}

function sizeOf(schema: Schema, key: string, otherwise: number): number {
  const value = schema[key];
  return typeof value === "number" ? value : otherwise;
}

import { stringify } from "yaml";

/** How new text is written, so that it looks like what is there. */
export interface Style {
  readonly json: boolean;
  readonly newLine: string;
}

export function yamlStyle(text: string): Style {
  return { json: false, newLine: text.includes("\r\n") ? "\r\n" : "\n" };
}

export function jsonStyle(text: string): Style {
  return { ...yamlStyle(text), json: true };
}

/** On one line. */
export function valueText(value: unknown, { json }: Style): string {
  if (json || (typeof value === "string" && value.includes("\n"))) return JSON.stringify(value);
  const words = Array.isArray(value) && value.every((item) => typeof item !== "object");
  return stringify(value, { collectionStyle: "flow", flowCollectionPadding: !words, lineWidth: 0, blockQuote: false }).trimEnd();
}

/** A key and its value: maps as blocks, everything in them on a line each; in JSON all on one line. */
export function pairLines(key: string, value: unknown, style: Style): string[] {
  const name = valueText(key, style);
  if (style.json || !isBlock(value)) return [`${name}: ${valueText(value, style)}`];
  const below = Array.isArray(value)
    ? value.map((item) => `- ${valueText(item, style)}`)
    : Object.entries(value).flatMap(([inner, deeper]) => pairLines(inner, deeper, style));
  return [`${name}:`, ...below.map((line) => `  ${line}`)];
}

/** Lists of maps, such as bindings, have a line for each; lists of words, and `{ default: true }`, stay on one. */
function isBlock(value: unknown): value is object {
  if (Array.isArray(value)) return value.some((item) => typeof item === "object");
  if (typeof value !== "object" || value === null) return false;
  const keys = Object.keys(value);
  return keys.length > 1 || (keys.length === 1 && keys[0] !== "default");
}

import { z } from "zod";
import { configSchema } from "../contract/config.ts";
import { readerOf } from "../contract/config-readers.ts";

interface Node {
  description?: string;
  readonly properties?: Record<string, Node>;
  readonly additionalProperties?: Node | boolean;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
}

/** For editors: what may be written, shorthands included, with a word about each key. */
export function configJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" });
  describe(schema as Node, []);
  return { ...schema, title: "Guildhall's config", description: "See `guildhall config explain KEY` for what a key is and who reads it." };
}

function describe(node: Node, path: readonly string[]): void {
  for (const option of node.anyOf ?? []) describe(option, path);
  if (node.items) describe(node.items, path);
  for (const [key, inner] of Object.entries(node.properties ?? {})) name(inner, [...path, key]);
  if (typeof node.additionalProperties === "object") name(node.additionalProperties, [...path, "*"]);
}

/** A key that has a line only through what is around it is told about there. */
function name(node: Node, path: readonly string[]): void {
  const reader = readerOf(path);
  if (reader && reader !== readerOf(path.slice(0, -1))) node.description = reader.means;
  describe(node, path);
}

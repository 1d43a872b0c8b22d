import type { z } from "zod";
import { configSchema } from "../src/contract/config.ts";
import { formsOf, partsOf } from "../src/settings/schema-walk.ts";

/** Every key that holds a value and not other keys: `*` for any name, lists by the key of the list. */
export function schemaLeaves(): string[] {
  const leaves = new Set<string>();
  const walk = (schema: z.core.$ZodType, path: readonly string[]): void => {
    for (const form of formsOf(schema)) {
      const parts = partsOf(form);
      if (parts.length === 0) leaves.add(path.join("."));
      for (const [key, inner] of parts) walk(inner, key === "[]" ? path : [...path, key]);
    }
  };
  walk(configSchema, []);
  return [...leaves];
}

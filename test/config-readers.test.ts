import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CONFIG_READERS, readerOf } from "../src/contract/config-readers.ts";
import { schemaLeaves } from "./schema-leaves.ts";

const leaves = schemaLeaves();

test.each(leaves)("%s has a line in the table of readers", (leaf) => {
  expect(readerOf(leaf.split("."))).toBeDefined();
});

test.each(Object.keys(CONFIG_READERS))("%s is a key of the schema, and its readers are rooms", (pattern) => {
  expect(leaves.some((leaf) => leaf === pattern || leaf.startsWith(`${pattern}.`))).toBe(true);
  const { readBy } = CONFIG_READERS[pattern] as (typeof CONFIG_READERS)[string];
  expect(readBy).not.toEqual([]);
  for (const room of readBy) expect(existsSync(join(import.meta.dirname, "../src", room)), room).toBe(true);
});

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { chatHistory } from "./chat-history.ts";

const folder = mkdtempSync(join(tmpdir(), "guildhall-history-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("what was typed is there the next time, the newest first, for this user alone", () => {
  const file = join(folder, "one");
  const first = chatHistory(file);
  expect(first.lines).toEqual([]);
  first.keep("one");
  first.keep('two "quoted"');
  expect(chatHistory(file).lines).toEqual(['two "quoted"', "one"]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("it is bounded, and what is broken in it is passed over", () => {
  const file = join(folder, "many");
  writeFileSync(file, `not json\n${Array.from({ length: 3_000 }, (_, index) => `"${index}"`).join("\n")}\n`, { mode: 0o644 });
  const { lines, keep } = chatHistory(file);
  expect(lines).toHaveLength(500);
  expect(lines[0]).toBe("2999");
  expect(readFileSync(file, "utf8").split("\n")).toHaveLength(501);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  keep("x".repeat(5_000));
  expect(readFileSync(file, "utf8").split("\n")).toHaveLength(501);
});

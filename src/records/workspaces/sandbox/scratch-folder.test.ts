import { chownSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { scratchFolder } from "./scratch-folder.ts";

const made: string[] = [];
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Of a process that cannot be: numbers end at four millions. */
function leftBehind(name: string): string {
  const folder = join(tmpdir().length > 60 ? "/tmp" : tmpdir(), `guildhall-sandbox-99999999-${name}`);
  mkdirSync(folder);
  made.push(folder);
  return folder;
}

test("what a killed daemon left behind is removed, what a running one has is not", async () => {
  const left = leftBehind(`left${process.pid}`);
  const [first, second] = [await scratchFolder(), await scratchFolder()];
  made.push(first, second);
  expect(existsSync(left)).toBe(false);
  expect(existsSync(first)).toBe(true);
  expect([dirname(first), basename(first)]).toEqual([dirname(left), expect.stringContaining(`-${process.pid}-`)]);
});

test.runIf(process.getuid?.() === 0)("what another user has put there is left alone, also by the administrator", async () => {
  const theirs = leftBehind(`theirs${process.pid}`);
  chownSync(theirs, 65_534, 65_534);
  made.push(await scratchFolder());
  expect(existsSync(theirs)).toBe(true);
});

import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, type TestContext, test } from "vitest";
import { looksOf, watchFiles } from "./watch-files.ts";

function watched({ onTestFinished }: TestContext, answers: readonly boolean[] = []) {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-watch-"));
  const file = join(folder, "guildhall.yaml");
  writeFileSync(file, "first");
  const end = new AbortController();
  const seen = { calls: 0 };
  const changed = async (): Promise<boolean> => answers[seen.calls++] ?? true;
  const watching = watchFiles([file, join(folder, ".env")], looksOf([file, join(folder, ".env")]), changed, end.signal);
  onTestFinished(async () => {
    end.abort();
    await watching;
    rmSync(folder, { recursive: true, force: true });
  });
  return { file, folder, seen };
}
const SOON = { timeout: 10_000, interval: 20 };

test("a file that was written, replaced, made or removed is a change, and each is told once", async (context) => {
  const { file, folder, seen } = watched(context);
  const changes = [
    () => writeFileSync(file, "other"),
    () => {
      writeFileSync(`${file}.new`, "third");
      renameSync(`${file}.new`, file);
    },
    () => writeFileSync(join(folder, ".env"), ""),
    () => rmSync(file),
  ];
  for (const [before, change] of changes.entries()) {
    change();
    await expect.poll(() => seen.calls, SOON).toBe(before + 1);
  }
  await sleep(400);
  expect(seen.calls).toBe(changes.length);
});

test("a change that could not be taken is told again until it is", async (context) => {
  const { file, seen } = watched(context, [false, false, true]);
  writeFileSync(file, "other");
  await expect.poll(() => seen.calls, SOON).toBe(3);
  await sleep(400);
  expect(seen.calls).toBe(3);
});

test("changes that never pause are told while they come", async (context) => {
  const { file, seen } = watched(context);
  for (let round = 0; seen.calls < 2; round++) {
    if (round > 400) throw new Error("nothing was told as long as the file changed");
    writeFileSync(file, `text ${round}`);
    await sleep(20);
  }
});

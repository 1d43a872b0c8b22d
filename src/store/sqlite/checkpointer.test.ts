import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { systemClock } from "../../kernel/clock.ts";
import { noCrashPoints } from "../../kernel/crash-points.ts";
import { TransactionContext } from "../open-transaction.ts";
import { Checkpointer } from "./checkpointer.ts";
import { GroupCommit } from "./group-commit.ts";
import { LateSync } from "./late-sync.ts";
import { openWriter } from "./open-database.ts";

test("the log is moved into the file while the writer is open, and the writer leaves none behind", async () => {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-checkpoints-"));
  const path = join(folder, "state.db");
  const connection = openWriter(path, systemClock);
  connection.db.exec("create table t (body text)");
  const writer = new GroupCommit({
    path,
    open: () => connection,
    reached: noCrashPoints,
    context: new TransactionContext(),
    onCommit: () => {},
    late: new LateSync(async () => {}),
    checkpointer: new Checkpointer(path),
  });
  const write = () => writer.transact("write", (tx) => tx.run`insert into t (body) values (${"x".repeat(2_000)})`);
  try {
    for (let count = 0; count < 120; count++) await write();
    await vi.waitFor(() => expect(statSync(path).size).toBeGreaterThan(100_000), { timeout: 10_000 });
    await write();
  } finally {
    await writer.close();
  }
  expect(existsSync(`${path}-wal`)).toBe(false);
  rmSync(folder, { recursive: true, force: true });
});

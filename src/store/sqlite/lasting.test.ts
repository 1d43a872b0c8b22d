import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { systemClock } from "../../kernel/clock.ts";
import { noCrashPoints } from "../../kernel/crash-points.ts";
import type { Lasts, Tx } from "../engine.ts";
import { TransactionContext } from "../open-transaction.ts";
import { GroupCommit } from "./group-commit.ts";
import { LateSync, syncFile } from "./late-sync.ts";
import { openWriter } from "./open-database.ts";

const NORMAL = 1;
const FULL = 2;

type Write = (name: string, lasts?: Lasts, meanwhile?: () => void) => Promise<unknown>;

/** Which bodies each commit made last, and how it was synced. */
async function commitsOf(work: (write: Write, look: (lasts: Lasts) => Promise<unknown>) => Promise<unknown>, told: boolean[] = []) {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-lasting-"));
  const connection = openWriter(join(folder, "state.db"), systemClock);
  connection.db.exec("create table t (name text)");
  const commits: { synced: number; bodies: string[] }[] = [];
  let bodies: string[] = [];
  const control = connection.control.bind(connection);
  connection.control = (text) => {
    control(text);
    if (text !== "COMMIT") return;
    commits.push({ synced: Number(connection.db.prepare("PRAGMA synchronous").get()?.synchronous), bodies });
    bodies = [];
  };
  const writer = new GroupCommit({
    path: join(folder, "state.db"),
    open: () => connection,
    reached: noCrashPoints,
    context: new TransactionContext(),
    onCommit: () => {},
    late: Object.assign(new LateSync(async () => {}), { committed: (synced: boolean) => told.push(synced) }),
  });
  const write: Write = (name, lasts, meanwhile) =>
    writer.transact(
      name,
      async (tx: Tx) => {
        bodies.push(name);
        meanwhile?.();
        await tx.run`insert into t (name) values (${name})`;
      },
      lasts,
    );
  try {
    await work(write, (lasts) => writer.transact("look", (tx) => tx.run`update t set name = 'x' where name = 'nobody'`, lasts));
    return commits;
  } finally {
    await writer.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

test("what lasts with others is committed without an fsync, and what comes after it with one", async () => {
  const commits = await commitsOf(async (write) => {
    await write("a");
    await write("claim", "with others");
    await write("b");
  });
  expect(commits).toEqual([
    { synced: FULL, bodies: ["a"] },
    { synced: NORMAL, bodies: ["claim"] },
    { synced: FULL, bodies: ["b"] },
  ]);
});

test("whoever waits together with something that must last is synced with it", async () => {
  const commits = await commitsOf((write) => Promise.all([write("claim", "with others"), write("a"), write("more", "with others")]));
  expect(commits).toEqual([{ synced: FULL, bodies: ["claim", "a", "more"] }]);
});

test("what must last and comes while others are being written waits for a commit of its own", async () => {
  const commits = await commitsOf(async (write) => {
    let later: Promise<unknown> | undefined;
    await write("claim", "with others", () => {
      later = write("a");
    });
    await later;
  });
  expect(commits).toEqual([
    { synced: NORMAL, bodies: ["claim"] },
    { synced: FULL, bodies: ["a"] },
  ]);
});

test("a commit that wrote nothing has synced nothing, and leaves nothing to be synced", async () => {
  const told: boolean[] = [];
  await commitsOf(async (write, look) => {
    await write("claim", "with others");
    await look("at once");
    await look("with others");
    await write("a");
  }, told);
  expect(told).toEqual([false, true]);
});

test("a slow disk is asked once at a time, and once more for what came meanwhile", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    const running: (() => void)[] = [];
    const late = new LateSync(() => new Promise<void>((resolve) => void running.push(resolve)));
    for (let commit = 0; commit < 100; commit++) {
      late.committed(false);
      vi.advanceTimersByTime(30);
    }
    expect(running).toHaveLength(1);
    running[0]?.();
    await vi.advanceTimersByTimeAsync(60);
    expect(running).toHaveLength(2);
    const closed = late.close();
    running[1]?.();
    await closed;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(running).toHaveLength(2);
  } finally {
    vi.useRealTimers();
  }
});

test("what nobody waited for is on the disk soon, once; where others come in time, by their fsync alone", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    let synced = 0;
    const late = new LateSync(async () => {
      synced++;
    });
    late.committed(false);
    vi.advanceTimersByTime(40);
    late.committed(false);
    expect(synced).toBe(0);
    await vi.advanceTimersByTimeAsync(20);
    expect(synced).toBe(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(synced).toBe(1);
    for (let turn = 0; turn < 100; turn++) {
      late.committed(false);
      vi.advanceTimersByTime(30);
      late.committed(true);
    }
    vi.advanceTimersByTime(1_000);
    expect(synced).toBe(1);
    late.committed(false);
    vi.advanceTimersByTime(60);
    expect(synced).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

test("the file of the log can be synced while it is written, and one that is not there tells", async () => {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-lasting-"));
  const connection = openWriter(join(folder, "state.db"), systemClock);
  try {
    connection.db.exec("create table t (name text)");
    await syncFile(join(folder, "state.db-wal"));
    await expect(syncFile(join(folder, "nowhere"))).rejects.toMatchObject({ code: "ENOENT" });
  } finally {
    connection.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

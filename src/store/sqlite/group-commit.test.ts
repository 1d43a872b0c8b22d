import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStore, type Store } from "../store.ts";

let folder: string;
let store: Store;
let onCommit: () => void = () => {};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "guildhall-group-"));
  onCommit = () => {};
  store = await openStore(`sqlite:${join(folder, "state.db")}`, {
    reached: (point) => {
      if (point === "store.commit.before") onCommit();
    },
  });
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const append = (name: string) =>
  store.transact(name, (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [name] }));

/** As SQLite reports it: `errcode` is the extended result code. */
const sqliteError = (errcode: number) => Object.assign(new Error("planted"), { code: "ERR_SQLITE_ERROR", errcode });

test("when the commit fails, nobody is told a refusal that rests on rows of the same batch", async () => {
  onCommit = () => {
    onCommit = () => {};
    throw sqliteError(13);
  };
  const writes = append("first");
  const refuses = store.transact("second", async (tx) => {
    if (await tx.get`select 1 from ledger`) throw new Error("there is an event already");
  });
  const [first, second] = await Promise.allSettled([writes, refuses]);
  expect(first).toMatchObject({ status: "rejected", reason: { code: "store.full" } });
  expect(second).toMatchObject({ status: "rejected", reason: { code: "store.full" } });
  expect(await store.ledger.read(0, 10)).toEqual([]);
  await append("after");
  expect(await store.ledger.read(0, 10)).toHaveLength(1);
});

test("a body that failed after writing is done without, and every other body of its batch counts once", async () => {
  const runs = new Map<string, number>();
  const results = await Promise.allSettled(
    Array.from({ length: 10 }, (_, index) =>
      store.transact(`op ${index}`, async (tx) => {
        runs.set(`${index}`, (runs.get(`${index}`) ?? 0) + 1);
        await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [`${index}`] });
        if (index === 7) throw new Error("no");
      }),
    ),
  );
  expect(results.filter((result) => result.status === "rejected")).toHaveLength(1);
  expect((await store.ledger.read(0, 100)).map((event) => event.subject[0])).toEqual(["0", "1", "2", "3", "4", "5", "6", "8", "9"]);
  expect(runs.get("0")).toBe(2);
});

test("snapshots that could not be opened do not use up those that can", async () => {
  const path = join(folder, "state.db");
  await append("x");
  renameSync(path, `${path}.away`);
  for (let attempt = 0; attempt < 6; attempt++) await store.snapshot((reads) => reads.all`select seq from ledger`).catch(() => {});
  renameSync(`${path}.away`, path);
  expect(await store.snapshot((reads) => reads.all`select seq from ledger`)).toHaveLength(1);
});

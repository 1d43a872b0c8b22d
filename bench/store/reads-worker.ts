import { DatabaseSync } from "node:sqlite";
import { openStore } from "../../src/store/store.ts";
import { serve } from "../child.ts";

export interface ReadsTask {
  readonly side: "store" | "raw";
  readonly path: string;
  readonly rows: number;
  readonly reads: number;
}

export interface ReadsResult {
  readonly perSecond: number;
}

await serve<ReadsTask, ReadsResult>(async ({ side, path, rows, reads }) => {
  const store = await openStore(`sqlite:${path}`);
  await store.transact("bench rows", async (tx) => {
    await tx.run`create table bench_entries (id integer primary key, value text not null)`;
    for (let id = 1; id <= rows; id++) await tx.run`insert into bench_entries (id, value) values (${id}, ${"x".repeat(100)})`;
  });
  const raw = new DatabaseSync(path, { readOnly: true });
  const statement = raw.prepare("select id, value from bench_entries where id = ?");
  const read =
    side === "raw"
      ? async (count: number) => {
          for (let index = 0; index < count; index++) expectRow(statement.get(1 + ((index * 7919) % rows)));
        }
      : async (count: number) => {
          for (let index = 0; index < count; index++)
            expectRow(await store.read.get`select id, value from bench_entries where id = ${1 + ((index * 7919) % rows)}`);
        };
  await read(reads / 4);
  const started = performance.now();
  await read(reads);
  const perSecond = reads / ((performance.now() - started) / 1_000);
  raw.close();
  await store.close();
  return { perSecond };
});

function expectRow(row: unknown): void {
  if (row === undefined) throw new Error("a row is missing");
}

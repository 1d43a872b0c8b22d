import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { serve } from "../child.ts";
import { quantile } from "../spread.ts";

export interface CommitsTask {
  readonly folder: string;
  readonly commits: number;
}

/** Durable commits of one small row, one after another, with nothing of ours: what the disk and the database allow. */
await serve<CommitsTask, { readonly p50: number; readonly p99: number; readonly perSecond: number }>(async ({ folder, commits }) => {
  const file = join(folder, "raw.db");
  const db = new DatabaseSync(file);
  db.exec("pragma journal_mode = wal; pragma synchronous = full; create table t (id integer primary key, body text)");
  const insert = db.prepare("insert into t (body) values (?)");
  const times: number[] = [];
  const begun = performance.now();
  for (let index = 0; index < commits; index++) {
    const before = performance.now();
    insert.run("x".repeat(200));
    times.push(performance.now() - before);
  }
  const perSecond = commits / ((performance.now() - begun) / 1_000);
  db.close();
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true });
  times.sort((a, b) => a - b);
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), perSecond };
});

import { join } from "node:path";
import { startPostgres } from "../../test/postgres-server.ts";
import { startChild } from "../child.ts";
import type { BenchOptions } from "../main.ts";
import type { Figure, Section } from "../report.ts";
import { interleave, quantile, spread } from "../spread.ts";
import type { WatchResult, WatchTask } from "./watch-worker.ts";

const WRITES = 150;
const WATCHERS = 10;

/** How long it takes from a write to its watchers. */
export async function watch({ rounds, progress }: BenchOptions, folder: string): Promise<Section> {
  const server = await startPostgres({ fsync: "on", synchronous_commit: "on" });
  let places = 0;
  const start = (role: WatchTask["role"], location: string) =>
    startChild<WatchResult>("pools/watch-worker.ts", { role, location, writes: WRITES, watchers: WATCHERS } satisfies WatchTask);
  const oneProcess = async (): Promise<WatchResult> => {
    const child = start("both", `sqlite:${join(folder, `watch-${places++}.db`)}`);
    await child.ready;
    child.go();
    return child.result;
  };
  const twoProcesses = async (): Promise<WatchResult> => {
    const location = `${server.url}?schema=watch_${places++}`;
    // One after the other: the first of them makes the tables.
    const watcher = start("watch", location);
    await watcher.ready;
    const writer = start("write", location);
    await writer.ready;
    watcher.go();
    writer.go();
    await writer.result;
    return watcher.result;
  };
  try {
    const results = await interleave({ sqlite: oneProcess, postgres: twoProcesses }, rounds, (line) => progress(`pools watch, ${line}`));
    const at = (name: string, lists: readonly WatchResult[], q: number): Figure => ({
      name,
      unit: "ms",
      value: spread(
        lists.map((list) =>
          quantile(
            list.toSorted((a, b) => a - b),
            q,
          ),
        ),
      ),
    });
    return {
      title: "Watch, write to delivered",
      notes: [
        `${WATCHERS} watchers, from before the write (its commit included) to the change. SQLite: one process. PostgreSQL: two.`,
        "Lower is better; for information.",
      ],
      figures: [
        at("SQLite p50", results.sqlite, 0.5),
        at("SQLite p99", results.sqlite, 0.99),
        at("PostgreSQL p50", results.postgres, 0.5),
        at("PostgreSQL p99", results.postgres, 0.99),
      ],
    };
  } finally {
    await server.remove();
  }
}

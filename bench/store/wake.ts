import { join } from "node:path";
import { startPostgres } from "../../test/postgres-server.ts";
import { startChild } from "../child.ts";
import type { BenchOptions } from "../main.ts";
import { installPeers } from "../peers.ts";
import type { Figure, Section } from "../report.ts";
import { interleave, quantile, ratios, spread } from "../spread.ts";
import type { WakeResult, WakeTask } from "./wake-worker.ts";

const ITEMS = 150;

/** How long work lies there before a waiting consumer has claimed it. */
export async function wake({ rounds, progress }: BenchOptions, folder: string): Promise<Section> {
  installPeers(progress);
  const server = await startPostgres({ fsync: "on", synchronous_commit: "on" });
  const start = (task: Omit<WakeTask, "items">) =>
    startChild<WakeResult>("store/wake-worker.ts", { ...task, items: ITEMS } satisfies WakeTask);
  let places = 0;
  const oneProcess = async (): Promise<WakeResult> => {
    const child = start({ queue: "guildhall", role: "both", location: `sqlite:${join(folder, `wake-${places++}.db`)}`, schema: "" });
    await child.ready;
    child.go();
    return child.result;
  };
  const twoProcesses = (queue: WakeTask["queue"]) => async (): Promise<WakeResult> => {
    const schema = `wake_${places++}`;
    const location = queue === "guildhall" ? `${server.url}?schema=${schema}` : server.url;
    // One after the other: the first of them makes the tables.
    const consumer = start({ queue, role: "consume", location, schema });
    await consumer.ready;
    const producer = start({ queue, role: "produce", location, schema });
    await producer.ready;
    consumer.go();
    producer.go();
    await producer.result;
    return consumer.result;
  };
  try {
    const results = await interleave(
      { sqlite: oneProcess, postgres: twoProcesses("guildhall"), graphile: twoProcesses("graphile") },
      rounds,
      (line) => progress(`store wake, ${line}`),
    );
    const at = (q: number, lists: readonly WakeResult[]): number[] =>
      lists.map((list) =>
        quantile(
          [...list].sort((a, b) => a - b),
          q,
        ),
      );
    const alone = (name: string, q: number): Figure => ({ name, unit: "ms", value: spread(at(q, results.sqlite)) });
    const compared = (name: string, q: number): Figure => {
      const [ours, theirs] = [at(q, results.postgres), at(q, results.graphile)];
      return {
        name,
        unit: "ms",
        value: spread(ours),
        against: { name: "graphile-worker", value: spread(theirs) },
        ratio: ratios(ours, theirs),
      };
    };
    return {
      title: "Wake-up, enqueue to claimed",
      notes: ["SQLite: one process. PostgreSQL: the producer and the consumer are two processes. Lower is better; for information."],
      figures: [alone("SQLite p50", 0.5), alone("SQLite p99", 0.99), compared("PostgreSQL p50", 0.5), compared("PostgreSQL p99", 0.99)],
    };
  } finally {
    await server.remove();
  }
}

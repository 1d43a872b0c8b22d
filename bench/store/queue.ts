import { startPostgres } from "../../test/postgres-server.ts";
import { runChild } from "../child.ts";
import type { BenchOptions } from "../main.ts";
import { installPeers } from "../peers.ts";
import type { Figure, Goal, Section } from "../report.ts";
import { interleave, ratios, spread } from "../spread.ts";
import type { QueueResult, QueueTask } from "./queue-worker.ts";

/** The peer's own benchmark runs with these. */
const CONCURRENCY = 24;
const CONNECTIONS = 25;

interface Comparison {
  readonly name: string;
  readonly peer: string;
  readonly jobs: number;
  readonly batch: number;
  readonly goal: Goal;
}

const COMPARISONS: readonly Comparison[] = [
  { name: "claim 1, settle 1", peer: "graphile-worker, defaults", jobs: 10_000, batch: 1, goal: { atLeast: 1 } },
  { name: "claim 50, settle 50", peer: "graphile-worker, local queue and batches", jobs: 60_000, batch: 50, goal: { atLeast: 0.8 } },
];

export async function queue({ rounds, progress }: BenchOptions): Promise<Section> {
  installPeers(progress);
  const server = await startPostgres({ fsync: "on", synchronous_commit: "on" });
  let schemas = 0;
  const side =
    (side: QueueTask["side"], { jobs, batch }: Comparison) =>
    (): Promise<QueueResult> =>
      runChild<QueueResult>("store/queue-worker.ts", {
        side,
        url: server.url,
        schema: `bench_${schemas++}`,
        jobs,
        concurrency: CONCURRENCY,
        connections: CONNECTIONS,
        batch,
      } satisfies QueueTask);
  const figures: Figure[] = [];
  try {
    for (const comparison of COMPARISONS) {
      const { ours, theirs } = await interleave(
        { ours: side("guildhall", comparison), theirs: side("graphile", comparison) },
        rounds,
        (line) => progress(`store queue, ${comparison.name}, ${line}`),
      );
      const compared = (name: string, key: keyof QueueResult): Figure => {
        const [mine, peers] = [ours.map((result) => result[key]), theirs.map((result) => result[key])];
        return {
          name,
          unit: "/s",
          value: spread(mine),
          against: { name: comparison.peer, value: spread(peers) },
          ratio: ratios(mine, peers),
        };
      };
      figures.push({ ...compared(comparison.name, "perSecond"), goal: comparison.goal });
      figures.push(
        compared(
          comparison.batch === 1 ? "  enqueue, one per transaction" : `  enqueue, ${comparison.batch} per transaction`,
          "enqueuedPerSecond",
        ),
      );
    }
  } finally {
    await server.remove();
  }
  const notes = [
    `PostgreSQL, fsync and synchronous_commit on; one process, ${CONCURRENCY} workers, ${CONNECTIONS} connections, empty handlers.`,
    "Ours is fenced: a settled claim is checked against its fence; the peer deletes by id.",
  ];
  return { title: "Work queue, claim to completion", notes, figures };
}

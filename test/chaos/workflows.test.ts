import { expect, inject, test } from "vitest";
import { WORKFLOW_POINTS, workflowsChaos } from "./workflows-chaos.ts";

/** A dead daemon's work is found after its lease there, which takes a while; the long form kills at all of them. */
const FEW = ["turn.committed", "outside: fire"] as const;

/** The short form of `npm run chaos -- workflows`. */
test.each([
  ["sqlite", 1, WORKFLOW_POINTS],
  ["postgres", 1, FEW],
] as const)(
  "W1 W2 W6 on %s: killed %i times at every line of workflows with ten branches, every run completes, every step's result is recorded once, no unsafe call is repeated",
  { timeout: 300_000 },
  async (database, hits, points) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`workflows chaos on ${database}: seed ${seed}`);
    const report = await workflowsChaos({
      database,
      hits,
      randomly: hits,
      seed,
      points,
      postgresUrl: inject("postgresUrl"),
      progress: () => {},
    });
    expect(report.problems, `seed ${seed}`).toEqual([]);
    expect(report.counts.completed).toBe(report.workflows);
    expect(report.counts["fired once"]).toBeGreaterThan(0);
  },
);

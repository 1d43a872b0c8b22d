import { expect, inject, test } from "vitest";
import { workflowsChaos } from "./workflows-chaos.ts";

/** The short form of `npm run chaos -- workflows`. */
test.each([
  ["sqlite", 1],
  ["postgres", 1],
] as const)(
  "W1 W2 W6 on %s: killed %i times at every line of workflows with ten branches, every run completes, every step's result is recorded once, no unsafe call is repeated",
  { timeout: 300_000 },
  async (database, hits) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`workflows chaos on ${database}: seed ${seed}`);
    const report = await workflowsChaos({ database, hits, randomly: hits, seed, postgresUrl: inject("postgresUrl"), progress: () => {} });
    expect(report.problems, `seed ${seed}`).toEqual([]);
    expect(report.counts.completed).toBe(report.workflows);
    expect(report.counts["fired once"]).toBeGreaterThan(0);
  },
);

import { expect, inject, test } from "vitest";
import { apiChaos } from "./http-chaos.ts";

/** The short form of `npm run chaos -- api`. */
test.each([
  ["sqlite", 1, 2],
  ["postgres", 2, 2],
] as const)(
  "V1 V2 V3 V4 V5 L1 L5 L6 M1 M4 A1 A2 A3 A4 A5 E1 D1 D2 over HTTP on %s: %i daemon(s) killed %i times under three client processes",
  { timeout: 120_000 },
  async (database, daemons, cycles) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`api chaos on ${database}: seed ${seed}`);
    const postgresUrl = inject("postgresUrl");
    const report = await apiChaos({ database, daemons, cycles, seed, postgresUrl, drainMs: 3_000, progress: () => {} });
    expect(report.problems, `seed ${seed}`).toEqual([]);
    // How many there are depends on when it is killed: 85 to 143 were seen.
    expect(report.counts["operations on entries"]).toBeGreaterThan(20);
    for (const count of ["batches", "claims taken", "mails acked", "outcomes seen", "repeats with the same key"])
      expect(report.counts[count], count).toBeGreaterThan(0);
  },
);

import { expect, inject, test } from "vitest";
import { turnsChaos } from "./turns-chaos.ts";

/** The short form of `npm run chaos -- turns`. */
test.each([
  ["sqlite", 1],
  ["postgres", 1],
] as const)(
  "W2 P7 on %s: killed %i times at every line of a turn, no answer is acted on twice, no unsafe call is repeated, every message is answered once",
  { timeout: 240_000 },
  async (database, hits) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`turns chaos on ${database}: seed ${seed}`);
    const report = await turnsChaos({ database, hits, seed, postgresUrl: inject("postgresUrl"), progress: () => {} });
    expect(report.problems, `seed ${seed}`).toEqual([]);
    expect(report.counts.answered).toBe(report.messages);
    expect(report.counts["fired once"]).toBeGreaterThan(0);
  },
);

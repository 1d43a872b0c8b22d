import { expect, inject, test } from "vitest";
import { TURN_POINTS, turnsChaos } from "./turns-chaos.ts";

/** A dead daemon's work is found after its lease there, which takes a while; the long form kills at all of them. */
const FEW = ["tool.intended", "outside: fire"] as const;

/** The short form of `npm run chaos -- turns`. */
test.each([
  ["sqlite", 1, TURN_POINTS],
  ["postgres", 1, FEW],
] as const)(
  "W2 P7 on %s: killed %i times at every line of a turn, no answer is acted on twice, no unsafe call is repeated, every message is answered once",
  { timeout: 240_000 },
  async (database, hits, points) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`turns chaos on ${database}: seed ${seed}`);
    const report = await turnsChaos({ database, hits, points, seed, postgresUrl: inject("postgresUrl"), progress: () => {} });
    expect(report.problems, `seed ${seed}`).toEqual([]);
    expect(report.counts.answered).toBe(report.messages);
    expect(report.counts["fired once"]).toBeGreaterThan(0);
  },
);

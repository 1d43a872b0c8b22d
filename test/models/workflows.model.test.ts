import { describe, test } from "vitest";
import { seededRandom } from "../../src/kernel/random.ts";
import { PLACES } from "../stores.ts";
import { SEED } from "./seed.ts";
import { WorkflowStorm } from "./workflow-storm.ts";

/** How many storms, and how many things happen in each of them. By hand: more of both. */
const STORMS = { sqlitePlace: 6, postgresPlace: 2 };
const HAPPENINGS = 40;

describe.each(PLACES)("workflows on %s, whatever happens to them", (_name, makePlace) => {
  test("W1 W2 W3 W5 they end, nothing is done twice, and nothing is left over", { timeout: 240_000 }, async () => {
    for (let round = 0; round < STORMS[makePlace.name as keyof typeof STORMS]; round++) {
      const storm = await WorkflowStorm.gather(makePlace(), seededRandom(SEED + round));
      try {
        for (let happening = 0; happening < HAPPENINGS; happening++) await storm.happen();
        await storm.calm();
      } catch (error) {
        throw new Error(`storm ${SEED + round}: ${(error as Error).message}\n${storm.told.slice(-40).join("\n")}`, { cause: error });
      } finally {
        await storm.remove();
      }
    }
  });
});

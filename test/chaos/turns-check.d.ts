import type { Run } from "../../src/contract/wire.ts";
import type { Witness } from "./turns-witness.ts";
/** Holds what the runs say against what was seen outside. `unknown`: calls of each run that the ledger calls unknown. */
export declare function checkTurns(
  runs: ReadonlyMap<string, Run>,
  witness: Witness,
  unknown: ReadonlyMap<string, number>,
): {
  readonly problems: string[];
  readonly counts: Record<string, number>;
};

import type { Told } from "./http-records.ts";
/** One holder per fence, fences that only grow, and no two holders at a time, by what the holders themselves were told. */
export declare function claimProblems(told: readonly Told[]): string[];

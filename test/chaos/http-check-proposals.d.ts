import type { Proposal } from "../../src/contract/proposals.ts";
import { type Histories } from "./http-check-pools.ts";
import { type Told } from "./http-records.ts";
/** One outcome for everybody, for good, by the rule, with its write or without. */
export declare function proposalProblems(told: readonly Told[], final: readonly Proposal[], histories: Histories): string[];

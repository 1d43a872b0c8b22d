import { type Histories } from "./http-check-pools.ts";
import type { Told } from "./http-records.ts";
/** A mail as it stands in the end. */
export interface FinalMail {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly state: string;
}
/** Nothing lost, nothing doubled, nothing after its ack, and an ack's write exactly with the ack. */
export declare function mailProblems(told: readonly Told[], mail: readonly FinalMail[], histories: Histories): string[];

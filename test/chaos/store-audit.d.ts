import type { Store } from "../../src/store/store.ts";
import type { Acknowledgement } from "./store-worker.ts";
/** What the outside was told, over all lives of the victims. */
export declare class Told {
  #private;
  readonly wrote: Map<string, number>;
  readonly did: Set<string>;
  readonly answers: Map<string, number>;
  readonly stored: Map<string, string>;
  readonly problems: string[];
  readonly refusals: Map<string, number>;
  tried: number;
  counted: number;
  leased: number;
  note({ kind, op, value }: Acknowledgement): void;
  get acknowledged(): number;
}
export interface Verdict {
  readonly lost: number;
  readonly duplicated: number;
  readonly halfApplied: number;
  readonly otherwise: number;
  readonly examples: readonly string[];
}
/** Compares what was told with what is there, through the store's own eyes and by plain counting. */
export declare function audit(store: Store, told: Told, drained: boolean): Promise<Verdict>;

import { type Told, type Watched } from "./http-records.ts";
import type { Wire } from "./http-wire.ts";
export declare const WATCH_UNTIL = "last";
export declare function keysOf(generation: number): string[];
/** The pool of a round: registers, pairs and acks may be written blindly, counters only with the version they replace. */
export declare function makePool(wire: Wire, generations: number): Promise<void>;
export declare const sayLast: (wire: Wire) => Promise<void>;
export interface RoundVerdict {
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}
/** Looks at what is there in the end, as an operator, and holds it against all that was told. */
export declare function judge(wire: Wire, told: readonly Told[], watched: readonly Watched[], generations: number): Promise<RoundVerdict>;

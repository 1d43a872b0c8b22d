import { type Operation } from "../linearizability.ts";
import type { PoolInput, PoolOutput } from "./http-records.ts";
export type KeyOperation = Operation<PoolInput, PoolOutput>;
/** Null, or why no order of these operations explains their answers. */
export declare function refuted(history: readonly KeyOperation[]): string | null;

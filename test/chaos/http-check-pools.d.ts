import type { Entry } from "../../src/contract/pools.ts";
import { type Told, type Watched } from "./http-records.ts";
export type Histories = ReadonlyMap<string, readonly Entry[]>;
type Of<Kind extends Told["kind"]> = Extract<
  Told,
  {
    kind: Kind;
  }
>;
export declare const only: <Kind extends Told["kind"]>(told: readonly Told[], kind: Kind) => Of<Kind>[];
/** What is wrong with the entries: by the answers alone, and against what `/history` says in the end. */
export declare function poolProblems(told: readonly Told[], histories: Histories, generations: number): string[];
/** Every operation on the pool, once, in order, whole: as many events as the histories have, and the same ones. */
export declare function watchProblems(watched: readonly Watched[], histories: Histories): string[];

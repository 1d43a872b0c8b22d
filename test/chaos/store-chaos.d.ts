import { type Verdict } from "./store-audit.ts";
export interface ChaosOptions {
  readonly database: "sqlite" | "postgres";
  readonly cycles: number;
  readonly seed: number;
  readonly progress: (line: string) => void;
}
export interface ChaosReport {
  readonly database: string;
  readonly seed: number;
  readonly cycles: Record<string, number>;
  readonly hits: Record<string, number>;
  readonly acknowledged: number;
  readonly refused: Record<string, number>;
  readonly verdict: Verdict;
  readonly victimErrors: readonly string[];
}
/** Lives and deaths of victims on one database after another, with an audit at the end of each. */
export declare function storeChaos(options: ChaosOptions): Promise<ChaosReport>;

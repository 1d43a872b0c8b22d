import type { CrashPoint } from "../../src/kernel/crash-points.ts";
/** What a victim does until it is killed. Everything it was told to be durable it tells the outside at once, on its standard output. */
export interface WorkerPlan {
  readonly location: string;
  readonly name: string;
  readonly seed: number;
  /** How many have worked on this database before. */
  readonly life: number;
  readonly ttlMs: number;
  /** Kill this process at the n-th time this point is reached. */
  readonly crash?: {
    readonly point: CrashPoint;
    readonly hit: number;
  };
  /** `work`: until killed. `drain`: until no work is left. `open`: no more than that. */
  readonly mode: "work" | "drain" | "open";
  /** Take up all file handles for a while. */
  readonly exhaustHandles?: boolean;
}
export interface Acknowledgement {
  readonly kind: "tried" | "wrote" | "did" | "answered" | "counted" | "leased" | "stored" | "refused" | "ready";
  readonly op: string;
  readonly value?: unknown;
}

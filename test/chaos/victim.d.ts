import type { Acknowledgement, WorkerPlan } from "./store-worker.ts";
export interface Limits {
  /** Largest file the victim may write, in KiB: a full disk. */
  readonly fileKib?: number;
  readonly openFiles?: number;
}
/** A process that works on the store until it is killed. What it says is heard here, outside, and stays true after its death. */
export declare class Victim {
  #private;
  readonly ended: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly errors: string;
  }>;
  readonly ready: Promise<boolean>;
  constructor(plan: WorkerPlan, hear: (acknowledgement: Acknowledgement) => void, limits?: Limits);
  signal(name: NodeJS.Signals): void;
  kill(): Promise<void>;
}

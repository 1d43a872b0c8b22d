import type { DaemonPlan } from "./http-records.ts";
/** A process of ours that says one JSON after another, and what became of it. */
export declare class Talker<Said> {
  #private;
  readonly ended: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly errors: string;
  }>;
  constructor(worker: string, plan: unknown, hear: (said: Said) => void);
  say(line: string): void;
  kill(): Promise<void>;
}
/** A home with its port, on which one daemon lives after another. */
export declare class DaemonSeat {
  #private;
  readonly home: string;
  /** Which it reports when it starts. */
  token: string;
  crash: DaemonPlan["crash"];
  private constructor();
  static make(store: string | undefined): Promise<DaemonSeat>;
  get url(): string;
  /** True once it answers; false when it died before, as it may with a crash point. Anything else that ends it is an error. */
  start(crash?: DaemonPlan["crash"]): Promise<boolean>;
  /** When it has died of its crash point; false after so long. */
  died(withinMs: number): Promise<boolean>;
  /** kill -9. Whatever else had ended it would be a bug. */
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** Microseconds of the machine's monotonic clock, which all its processes share. */
export declare const instant: () => number;
/** `returned: null`: the answer never came, so it may have happened at any later time, or never. */
export interface Span {
  readonly called: number;
  readonly returned: number | null;
}
export type Shown = readonly [version: number, value: unknown] | null;
/** What was asked of one key. `swap` names the version it replaces, null: there must be none; `remove` likewise, null: whichever. */
export type PoolInput =
  | {
      readonly read: true;
    }
  | {
      readonly write: unknown;
    }
  | {
      readonly swap: readonly [version: number | null, value: unknown];
    }
  | {
      readonly remove: number | null;
    };
export type PoolOutput =
  | {
      readonly shown: Shown;
    }
  | {
      readonly wrote: readonly [version: number, value: unknown];
    }
  | {
      readonly removed: true;
    }
  | {
      readonly refused: Shown;
    }
  | {
      readonly absent: true;
    };
/** One thing a client did, as it saw it. `by` is its identity. */
export type Told = {
  readonly by: string;
} & (
  | ({
      readonly kind: "entry";
      readonly key: string;
      readonly input: PoolInput;
      readonly output: PoolOutput | null;
    } & Span)
  /** Two entries at once, with the same value; `versions` is null where no answer came, not even to the repeats. */
  | {
      readonly kind: "pair";
      readonly generation: number;
      readonly value: string;
      readonly versions: readonly number[] | null;
    }
  | ({
      readonly kind: "taken";
      readonly resource: string;
      readonly fence: number;
      readonly fresh: boolean;
      readonly takenAt: number;
      readonly expiresAt: number;
    } & Span)
  | ({
      readonly kind: "renewed";
      readonly fence: number;
      readonly expiresAt: number | null;
      readonly outcome: Outcome;
    } & Span)
  | ({
      readonly kind: "released";
      readonly fence: number;
      readonly outcome: Outcome;
    } & Span)
  | {
      readonly kind: "sent";
      readonly value: string;
      readonly id: string | null;
    }
  | {
      readonly kind: "received";
      readonly id: string;
      readonly fence: number;
      readonly value: string;
    }
  /** `with`: the ack was made together with a write of the mail's value to this key. */
  | {
      readonly kind: "acked";
      readonly id: string;
      readonly fence: number;
      readonly value: string;
      readonly outcome: Outcome;
      readonly with: string | null;
    }
  | {
      readonly kind: "proposed";
      readonly id: string | null;
      readonly value: string;
    }
  | ({
      readonly kind: "voted";
      readonly id: string;
      readonly vote: string;
      readonly counted: boolean;
    } & Span)
  | ({
      readonly kind: "saw";
      readonly id: string;
      readonly state: string;
      readonly because: string | null;
    } & Span)
  /** A repeat with the same key: `same` is whether the answer was the first one. */
  | {
      readonly kind: "repeated";
      readonly path: string;
      readonly key: string;
      readonly same: boolean;
    }
  /** An answer that no caller should ever get. */
  | {
      readonly kind: "odd";
      readonly what: string;
    }
);
export type Outcome = "done" | "refused" | "unknown";
/** One event as the watcher got it. */
export interface Watched {
  readonly seq: number;
  readonly type: string;
  readonly keys: readonly {
    readonly key: string;
    readonly version: number;
    readonly deleted?: boolean;
  }[];
}
/** What a client process is told to do. */
export interface ClientPlan {
  readonly urls: readonly string[];
  readonly token: string;
  readonly name: string;
  readonly names: readonly string[];
  readonly seed: number;
  /** So many things at a time. */
  readonly hands: number;
  /** How long requests whose answer was lost are repeated at the end. */
  readonly drainMs: number;
}
export interface WatchPlan {
  readonly urls: readonly string[];
  readonly token: string;
  /** It ends when it has seen this key. */
  readonly last: string;
}
export interface DaemonPlan {
  readonly home: string;
  readonly port: number;
  /** Die here, the n-th time it is reached. */
  readonly crash?:
    | {
        readonly point: string;
        readonly hit: number;
      }
    | undefined;
}
export declare const POOL = "chaos";
export declare const REGISTERS = 3;
export declare const registerKey: (generation: number, index: number) => string;
export declare const counterKey: (generation: number) => string;
export declare const pairKeys: (generation: number) => readonly [string, string];
export declare const doneKey: (generation: number) => string;
export declare const agreedKey: (value: string) => string;

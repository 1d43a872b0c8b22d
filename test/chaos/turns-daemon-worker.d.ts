/** A whole daemon whose model thinks, and whose tools act, in another process. It dies as kill -9 would end it, at an exact line. */
export interface TurnsPlan {
  readonly home: string;
  readonly witness: string;
  readonly leaseMs: number;
  /** `armed`: from the beginning; else when a line comes in. */
  readonly crash: {
    readonly point: string;
    readonly hit: number;
    readonly armed: boolean;
  } | null;
}

import { type IncomingHttpHeaders } from "node:http";
export interface Answered {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: IncomingHttpHeaders;
  readonly called: number;
  readonly returned: number;
}
export interface Unanswered {
  readonly status: null;
  readonly called: number;
  readonly returned: null;
}
export type Answer = Answered | Unanswered;
export interface Asking {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Which of the daemons; without it, whichever comes up. */
  readonly node?: number;
}
/**
 * Requests over real sockets, which are never repeated behind the caller's back. What certainly did not arrive (nobody listens) is
 * sent again, as is what was turned away untouched (429); whatever else has no whole answer stays unknown.
 */
export declare class Wire {
  #private;
  constructor(urls: readonly string[], token: string, choose?: () => number);
  ask(method: string, path: string, asking?: Asking): Promise<Answer>;
  /** For what the run itself needs: repeated until it is answered. */
  insist(method: string, path: string, asking?: Asking): Promise<Answered>;
  close(): void;
}

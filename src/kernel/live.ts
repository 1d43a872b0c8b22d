/**
 * What can be seen of a turn while it runs. `place` tells the calls of one answer apart.
 * `restart`: what was said since the last call is void; it is said anew.
 */
export type LiveChunk =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "restart" }
  /** `args`: short, to be shown. */
  | { readonly kind: "call"; readonly place: number; readonly tool: string; readonly args: string }
  /** `note`: what came of it, in a few words. */
  | {
      readonly kind: "called";
      readonly place: number;
      readonly tool: string;
      readonly failed: boolean;
      readonly ms: number;
      readonly note: string;
    }
  /** Output of a call that still runs. */
  | { readonly kind: "progress"; readonly place: number; readonly tool: string; readonly text: string }
  /** A person's word is needed before the turn goes on. */
  | { readonly kind: "asks"; readonly approval: string; readonly tool: string; readonly shown: string }
  | { readonly kind: "note"; readonly text: string };

/** Port: running turns, from the turn to whoever listens on this node. Nothing is stored; what counts is the commit. */
export interface Live {
  /** Answers how to end it. An attempt that was overtaken ends nothing: it may notice long after the next one began. */
  begin(runId: string): () => void;
  /** A bare text is a piece of the answer. */
  publish(runId: string, chunk: string | LiveChunk): void;
  /** From the beginning of the running attempt on, until the signal aborts; listening begins with the call. */
  listen(runId: string, signal: AbortSignal): AsyncIterable<LiveChunk>;
}

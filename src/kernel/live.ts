/** `restart`: the attempt failed and a new one began; the text so far is void. */
export type LiveChunk = { readonly kind: "text"; readonly text: string } | { readonly kind: "restart" };

/** Port: text of running turns, from the turn to whoever listens on this node. Nothing is stored; what counts is the commit. */
export interface Live {
  /** Answers how to end it. An attempt that was overtaken ends nothing: it may notice long after the next one began. */
  begin(runId: string): () => void;
  publish(runId: string, text: string): void;
  /** From the beginning of the running attempt on, until the signal aborts; listening begins with the call. */
  listen(runId: string, signal: AbortSignal): AsyncIterable<LiveChunk>;
}

/** Port: the turns that run on this node. One that was stopped ends here at once; on another node, when its claim is renewed next. */
export interface RunningTurns {
  /** `stopped` aborts when somebody stops the turn; `over` says that it has ended. */
  begin(runId: string): { readonly stopped: AbortSignal; over(): void };
  /** To be called once the store says that the run has ended: whatever it still does is void. */
  stop(runId: string): void;
}

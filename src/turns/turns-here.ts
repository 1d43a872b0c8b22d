import type { RunningTurns } from "../kernel/running-turns.ts";

/** The turns inside this process. A run may be here twice: an attempt that was overtaken takes a while to notice. */
export class TurnsHere implements RunningTurns {
  readonly #turns = new Map<string, Set<AbortController>>();

  begin(runId: string): { readonly stopped: AbortSignal; over(): void } {
    const turn = new AbortController();
    const same = this.#turns.get(runId) ?? new Set();
    this.#turns.set(runId, same.add(turn));
    return {
      stopped: turn.signal,
      over: () => {
        same.delete(turn);
        if (same.size === 0 && this.#turns.get(runId) === same) this.#turns.delete(runId);
      },
    };
  }

  stop(runId: string): void {
    for (const turn of this.#turns.get(runId) ?? []) turn.abort();
  }
}

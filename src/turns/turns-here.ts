import { Roster } from "../kernel/roster.ts";
import type { RunningTurns } from "../kernel/running-turns.ts";

/** The turns inside this process. A run may be here twice: an attempt that was overtaken takes a while to notice. */
export class TurnsHere implements RunningTurns {
  readonly #turns = new Roster<string, AbortController[]>();

  begin(runId: string): { readonly stopped: AbortSignal; over(): void } {
    const turn = new AbortController();
    this.#turns.set(runId, [...(this.#turns.get(runId) ?? []), turn]);
    return {
      stopped: turn.signal,
      over: () => {
        const others = this.#turns.get(runId)?.filter((one) => one !== turn) ?? [];
        if (others.length > 0) this.#turns.set(runId, others);
        else this.#turns.delete(runId);
      },
    };
  }

  stop(runId: string): void {
    for (const turn of this.#turns.get(runId) ?? []) turn.abort();
  }
}

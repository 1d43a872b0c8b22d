import { isLinearizable, type Operation, type SequentialModel } from "../linearizability.ts";
import type { PoolInput, PoolOutput, Shown } from "./http-records.ts";

interface State {
  readonly last: number;
  /** Undefined: no entry. */
  readonly value: unknown;
}

/** A text by which two values are compared; a tombstone has one of its own. */
const textOf = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));

/**
 * One key as a single copy would behave. `witness` holds what some answer showed of a version: an operation without an answer
 * cannot have made that version into something else, which spares the search most of its guesses.
 */
function register(witness: ReadonlyMap<number, string>): SequentialModel<State, PoolInput, PoolOutput> {
  const next = (state: State, value: unknown): State | null => {
    const known = witness.get(state.last + 1);
    return known === undefined || known === textOf(value) ? { last: state.last + 1, value } : null;
  };
  const shows = (state: State, shown: Shown): boolean =>
    shown === null ? state.value === undefined : shown[0] === state.last && textOf(shown[1]) === textOf(state.value);
  const fits = (state: State, version: number | null): boolean => version === (state.value === undefined ? null : state.last);
  return {
    initial: { last: 0, value: undefined },
    step: (state, input, output) => {
      if ("read" in input) return output === null || ("shown" in output && shows(state, output.shown)) ? state : null;
      if (output && "refused" in output) {
        const version = "swap" in input ? input.swap[0] : "remove" in input ? (input.remove ?? undefined) : undefined;
        return version !== undefined && !fits(state, version) && shows(state, output.refused) ? state : null;
      }
      if (output && "absent" in output) return state.value === undefined ? state : null;
      if ("remove" in input) {
        if (state.value === undefined || (input.remove !== null && !fits(state, input.remove))) return null;
        return next(state, undefined);
      }
      if ("swap" in input && !fits(state, input.swap[0])) return null;
      const after = next(state, "swap" in input ? input.swap[1] : input.write);
      return after && output && !("wrote" in output && shows(after, output.wrote)) ? null : after;
    },
    key: (state) => `${state.last}:${textOf(state.value)}`,
  };
}

export type KeyOperation = Operation<PoolInput, PoolOutput>;

/** What the answers say about versions, or the version about which two answers disagree. */
function witnessOf(history: readonly KeyOperation[]): Map<number, string> | number {
  const witness = new Map<number, string>();
  for (const { output } of history) {
    if (!output) continue;
    const shown = "shown" in output ? output.shown : "wrote" in output ? output.wrote : "refused" in output ? output.refused : null;
    if (!shown) continue;
    const [version, value] = shown;
    if ((witness.get(version) ?? textOf(value)) !== textOf(value)) return version;
    witness.set(version, textOf(value));
  }
  return witness;
}

/** Null, or why no order of these operations explains their answers. */
export function refuted(history: readonly KeyOperation[]): string | null {
  const witness = witnessOf(history);
  if (typeof witness === "number") return `version ${witness} was shown with two values`;
  // A read without an answer showed nothing and changed nothing: it fits everywhere.
  const telling = history.filter(({ input, output }) => output !== null || !("read" in input));
  return isLinearizable(register(witness), telling) ? null : "no order of the operations explains their answers";
}

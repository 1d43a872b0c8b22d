/** One operation as its caller saw it. `returned: null`: the answer never came, so it may have happened at any later time, or never. */
export interface Operation<Input, Output> {
  readonly input: Input;
  readonly output: Output | null;
  readonly called: number;
  readonly returned: number | null;
}

/** What one copy of the thing would do, one operation after another. */
export interface SequentialModel<State, Input, Output> {
  readonly initial: State;
  /** The state after the operation, or null when the output could not have come from this state. `output` is null when unknown. */
  step(state: State, input: Input, output: Output | null): State | null;
  /** The same text for the same state. */
  key(state: State): string;
}

/**
 * Is there an order of the operations that respects real time and that one copy would have answered in the same way?
 * Wing and Gong's search with memory of (operations done, state): histories of one key, a hundred operations, take milliseconds.
 */
export function isLinearizable<State, Input, Output>(
  model: SequentialModel<State, Input, Output>,
  history: readonly Operation<Input, Output>[],
): boolean {
  const operations = [...history].sort((a, b) => a.called - b.called);
  const mustHappen = operations.filter((operation) => operation.returned !== null).length;
  const visited = new Set<string>();
  const search = (done: bigint, completed: number, state: State): boolean => {
    if (completed === mustHappen) return true;
    const memory = `${done}|${model.key(state)}`;
    if (visited.has(memory)) return false;
    visited.add(memory);
    // Nothing may be put before an operation that had returned by the time it was called.
    let earliestReturn = Number.POSITIVE_INFINITY;
    for (const [index, operation] of operations.entries()) {
      if (done & (1n << BigInt(index))) continue;
      if (operation.returned !== null) earliestReturn = Math.min(earliestReturn, operation.returned);
    }
    for (const [index, operation] of operations.entries()) {
      if (operation.called > earliestReturn) break;
      const bit = 1n << BigInt(index);
      if (done & bit) continue;
      const next = model.step(state, operation.input, operation.output);
      if (next !== null && search(done | bit, completed + (operation.returned === null ? 0 : 1), next)) return true;
    }
    return false;
  };
  return search(0n, 0, model.initial);
}

import { AsyncLocalStorage } from "node:async_hooks";
import { Failure } from "../kernel/failure.ts";

interface OpenTransaction {
  readonly label: string;
  readonly open: boolean;
}

/** The body's answer, unless it waits for something that is not the database. */
export async function withinTime<T>(label: string, ms: number, body: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooSlow(label)), ms);
  });
  try {
    return await Promise.race([body(), late]);
  } finally {
    clearTimeout(timer);
  }
}

export function tooSlow(label: string): Failure {
  return new Failure("store.transaction_too_slow", `transaction "${label}" took too long`);
}

/** Knows whether the running code is inside a transaction's body: a nested one would wait for itself for ever. */
export class TransactionContext {
  readonly #context = new AsyncLocalStorage<OpenTransaction>();

  nested(label: string): Failure | undefined {
    const outer = this.#context.getStore();
    if (!outer?.open) return undefined;
    return new Failure("store.nested_transaction", `transaction "${label}" was opened inside "${outer.label}"`);
  }

  run<Tx extends OpenTransaction, T>(tx: Tx, body: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#context.run(tx, body, tx);
  }
}

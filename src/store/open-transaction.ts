import { AsyncLocalStorage } from "node:async_hooks";
import { Failure } from "../kernel/failure.ts";

interface OpenTransaction {
  readonly label: string;
  readonly open: boolean;
}

/** Knows whether the running code is inside a transaction's body: a nested one would wait for itself for ever. */
export class TransactionContext {
  readonly #context = new AsyncLocalStorage<OpenTransaction>();

  refuseNested(label: string): void {
    const outer = this.#context.getStore();
    if (outer?.open) throw new Failure("store.nested_transaction", `transaction "${label}" was opened inside "${outer.label}"`);
  }

  run<Tx extends OpenTransaction, T>(tx: Tx, body: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#context.run(tx, body, tx);
  }
}

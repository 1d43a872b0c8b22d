import { AsyncLocalStorage } from "node:async_hooks";
import { Failure } from "../kernel/failure.ts";

interface OpenTransaction {
  label: string;
  open: boolean;
}

/** Knows whether the running code is inside a transaction's body: a nested one would wait for itself for ever. */
export class TransactionContext {
  readonly #context = new AsyncLocalStorage<OpenTransaction>();

  refuseNested(label: string): void {
    const outer = this.#context.getStore();
    if (outer?.open) throw new Failure("store.nested_transaction", `transaction "${label}" was opened inside "${outer.label}"`);
  }

  async run<T>(label: string, body: () => Promise<T>): Promise<T> {
    const current: OpenTransaction = { label, open: true };
    try {
      return await this.#context.run(current, body);
    } finally {
      current.open = false;
    }
  }
}

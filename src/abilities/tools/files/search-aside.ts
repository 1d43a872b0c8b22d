import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { Failure } from "../../../kernel/failure.ts";

export interface SearchedFile {
  readonly path: string;
  readonly text: string;
}
export interface SearchOrder {
  readonly kind: "names" | "contents";
  readonly pattern: string;
  readonly files: readonly SearchedFile[];
  readonly limit: number;
}
export interface Found {
  readonly path: string;
  /** 0 for a name. */
  readonly line: number;
  readonly text: string;
}

/** A thread that looks for one pattern, for a limited time in all. */
export class SearchAside {
  readonly #worker: Worker;
  #left: number;

  constructor(milliseconds: number) {
    this.#worker = new Worker(new URL(`./search-worker${extname(import.meta.url)}`, import.meta.url), {
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    // It may fail when nobody waits for it any more; an error that nobody listens to would end the daemon.
    this.#worker.on("error", () => {});
    this.#left = milliseconds;
  }

  async look(order: SearchOrder, signal: AbortSignal): Promise<Found[]> {
    const began = performance.now();
    const worker = this.#worker;
    const ended = new AbortController();
    try {
      return await new Promise<Found[]>((resolve, reject) => {
        const slow = (): void =>
          reject(
            new Failure("tool.timed_out", "looking for this pattern takes too long", { hint: "Use a simpler one, or a smaller folder." }),
          );
        const timer = setTimeout(slow, Math.max(1, this.#left));
        ended.signal.addEventListener("abort", () => clearTimeout(timer));
        signal.addEventListener("abort", () => reject(signal.reason as Error), { signal: ended.signal });
        const failed = (error: Error): void => reject(new Failure("tool.failed", error.message));
        worker.once("message", resolve);
        worker.once("error", failed);
        ended.signal.addEventListener("abort", () => worker.off("message", resolve).off("error", failed));
        worker.postMessage(order);
      });
    } finally {
      ended.abort();
      this.#left -= performance.now() - began;
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

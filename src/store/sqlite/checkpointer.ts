import { once } from "node:events";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";

/** About a thousand pages of the log; SQLite would do it as often. */
const EVERY_COMMITS = 100;

/**
 * Moves the write-ahead log into the file from a thread of its own. SQLite does that inside a COMMIT, whose owner, and with it everybody on
 * the event loop, then waits for two more fsyncs. Nothing depends on it: what it leaves the writer does itself when the log is long.
 */
export class Checkpointer {
  readonly #path: string;
  #commits = 0;
  #worker: Worker | undefined;
  #isBusy = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** After every commit. */
  committed(): void {
    if (++this.#commits < EVERY_COMMITS || this.#isBusy) return;
    this.#commits = 0;
    this.#isBusy = true;
    this.#worker ??= this.#start();
    this.#worker.postMessage("checkpoint");
  }

  /** Before the writer is closed, which moves the rest. */
  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#isBusy = true;
    if (!worker) return;
    worker.ref();
    const ended = once(worker, "exit");
    worker.postMessage("close");
    await ended.catch(() => {});
  }

  #start(): Worker {
    const worker = new Worker(new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url), {
      env: {},
      workerData: this.#path,
      // Else it is joined to ours, which makes a pipe behind them one that does not wait: other programs' writes to it would fail.
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    });
    worker.unref();
    worker.on("message", () => {
      this.#isBusy = false;
    });
    // The writer does it by itself then.
    worker.on("error", () => {});
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
      this.#isBusy = true;
    });
    return worker;
  }
}

import { open } from "node:fs/promises";

/** How long what was committed without an fsync may wait for one. */
const LATE_MS = 50;

/**
 * Sees to it that what was committed `with others` is on the disk soon, also where nothing comes after it. Nobody waits for this: it happens on
 * another thread, and where others come in time, not at all.
 */
export class LateSync {
  readonly #sync: () => Promise<void>;
  #since: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #syncing: Promise<void> | undefined;

  constructor(sync: () => Promise<void>) {
    this.#sync = sync;
  }

  /** After every commit that wrote something. */
  committed(synced: boolean): void {
    if (synced) {
      this.#since = undefined;
      return;
    }
    this.#since ??= performance.now();
    this.#look();
  }

  async close(): Promise<void> {
    this.#since = undefined;
    clearTimeout(this.#timer);
    await this.#syncing;
  }

  /** One at a time: a slow disk is not made quicker by more of them. */
  #look(): void {
    if (this.#since === undefined || this.#timer || this.#syncing) return;
    const left = Math.max(0, this.#since + LATE_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#since === undefined) return;
      if (performance.now() - this.#since >= LATE_MS) this.#syncing = this.#run();
      else this.#look();
    }, left).unref();
  }

  async #run(): Promise<void> {
    this.#since = undefined;
    // Whatever is wrong with the disk the writer hears of by itself, with its next fsync.
    await this.#sync().catch(() => {});
    this.#syncing = undefined;
    this.#look();
  }
}

/** By a handle of its own: of this file nobody holds locks that would go with it. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}

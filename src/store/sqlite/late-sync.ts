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

  constructor(sync: () => Promise<void>) {
    this.#sync = sync;
  }

  /** After every commit. */
  committed(synced: boolean): void {
    if (synced) this.#since = undefined;
    else {
      this.#since ??= performance.now();
      this.#timer ??= this.#in(LATE_MS);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #in(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#look(), ms).unref();
  }

  #look(): void {
    this.#timer = undefined;
    if (this.#since === undefined) return;
    const left = this.#since + LATE_MS - performance.now();
    if (left > 0) {
      this.#timer = this.#in(left);
      return;
    }
    this.#since = undefined;
    // Whatever is wrong with the disk the writer hears of by itself, with its next fsync.
    this.#sync().catch(() => {});
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

import { once } from "node:events";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { tokensOfText } from "./estimate.ts";

const TIMEOUT_MS = 15_000;
const CHARACTERS = 2_000_000;
const WAITING = 4;

/**
 * Counts tokens as OpenAI's newer models do, in a thread of its own: loading the tables alone would keep everybody waiting for a second. One
 * request at a time; where it takes too long, or there is too much, the answer is an estimate.
 */
export class TokenCounter {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  async count(texts: readonly string[]): Promise<number[]> {
    const estimate = texts.map(tokensOfText);
    if (this.#waiting >= WAITING || texts.reduce((sum, { length }) => sum + length, 0) > CHARACTERS) return estimate;
    this.#waiting++;
    const counted = this.#last.then(() => countAside(texts)).catch(() => estimate);
    this.#last = counted;
    try {
      return await counted;
    } finally {
      this.#waiting--;
    }
  }
}

async function countAside(texts: readonly string[]): Promise<number[]> {
  const worker = new Worker(new URL(`./count-tokens-worker${extname(import.meta.url)}`, import.meta.url), {
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  try {
    worker.postMessage(texts);
    const [counted] = (await once(worker, "message", { signal: AbortSignal.timeout(TIMEOUT_MS) })) as [number[]];
    return counted;
  } finally {
    void worker.terminate();
  }
}

import { setTimeout as sleep } from "node:timers/promises";

const AHEAD = 100;
const LOOK_MS = 50;

/**
 * Holds a sender back to what its reader takes. The SDK's streams take whatever they are given: a reader that has gone to sleep would
 * fill the memory.
 */
export class Pace {
  #told = 0;
  #taken = 0;

  /** Resolves when the reader is not too far behind. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#told - this.#taken >= AHEAD && !signal.aborted) await sleep(LOOK_MS, undefined, { ref: false });
    this.#told++;
  }

  /** The same response, counted as it is read. */
  counted(response: Response): Response {
    if (!response.body) return response;
    const count = new TransformStream<Uint8Array, Uint8Array>(
      {
        transform: (chunk, controller) => {
          // Comments keep the connection alive, and are not ours.
          if (chunk[0] !== COLON) this.#taken = Math.min(this.#told, this.#taken + 1);
          controller.enqueue(chunk);
        },
      },
      { highWaterMark: 1 },
      { highWaterMark: 0 },
    );
    return new Response(response.body.pipeThrough(count), { status: response.status, headers: response.headers });
  }
}

const COLON = ":".charCodeAt(0);

import { Failure } from "../../kernel/failure.ts";

export const MAX_BODY_BYTES = 1024 * 1024;
/** Smaller ones are read in one go. */
const SMALL_BYTES = 64 * 1024;

/** What requests hold in memory before anything is done with them, all together: what does not fit is told to come again. */
export class BodySpace {
  #free: number;

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** The request's body, of at most `max` bytes. Its space is given back by `using`. */
  async read(request: Request, max: number): Promise<{ readonly bytes: Uint8Array } & Disposable> {
    const declared = Number(request.headers.get("content-length") ?? Number.NaN);
    if (declared > max) throw tooLarge(max);
    let held = 0;
    const hold = (bytes: number): void => {
      if (bytes > this.#free) throw new Failure("request.busy", "too many large requests at once");
      this.#free -= bytes;
      held += bytes;
    };
    const release = (): void => {
      this.#free += held;
      held = 0;
    };
    try {
      if (declared <= SMALL_BYTES) hold(declared);
      const bytes = declared <= SMALL_BYTES ? new Uint8Array(await request.arrayBuffer()) : await gather(request, max, hold);
      if (bytes.length > max) throw tooLarge(max);
      return { bytes, [Symbol.dispose]: release };
    } catch (error) {
      release();
      if (error instanceof Failure) throw error;
      throw new Failure("request.malformed", "the body broke off", { cause: error });
    }
  }
}

/** Space is taken as bytes arrive: announcing much and sending little takes nobody else's. */
async function gather(request: Request, max: number, hold: (bytes: number) => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > max) throw tooLarge(max);
    hold(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(max: number): Failure {
  return new Failure("request.too_large", `a request may have ${max} bytes here`);
}

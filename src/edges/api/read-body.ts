import { Failure } from "../../kernel/failure.ts";

export const MAX_BODY_BYTES = 1024 * 1024;

/** Bytes of bodies that are held at once, of all requests together: what does not fit is told to come again. */
export class BodySpace {
  #free: number;

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** The request's body, of at most `max` bytes. Its space is given back when the request ends, by `using`. */
  async read(request: Request, max: number): Promise<{ readonly bytes: Uint8Array } & Disposable> {
    const declared = Number(request.headers.get("content-length") ?? Number.NaN);
    if (declared > max) throw tooLarge(max);
    const size = Number.isInteger(declared) && declared >= 0 ? declared : max;
    if (size > this.#free) throw new Failure("request.busy", "too many large requests at once");
    this.#free -= size;
    const release = (): void => {
      this.#free += size;
    };
    try {
      const bytes = Number.isInteger(declared) ? new Uint8Array(await request.arrayBuffer()) : await gather(request, max);
      if (bytes.length > max) throw tooLarge(max);
      return { bytes, [Symbol.dispose]: release };
    } catch (error) {
      release();
      if (error instanceof Failure) throw error;
      throw new Failure("request.malformed", "the body broke off", { cause: error });
    }
  }
}

async function gather(request: Request, max: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > max) throw tooLarge(max);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(max: number): Failure {
  return new Failure("request.too_large", `a request may have ${max} bytes here`);
}

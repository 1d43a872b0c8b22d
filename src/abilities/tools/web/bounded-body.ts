import type { Readable, Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { Failure } from "../../../kernel/failure.ts";

/**
 * A body, unpacked, up to a size: whatever it unpacks to, no more than that is ever in memory. The sender is cut off where enough has come, packed
 * or not.
 */
export async function readBounded(
  body: Readable,
  encoding: string | undefined,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly cut: boolean }> {
  const unpack = unpackerOf(encoding);
  const chunks: Uint8Array[] = [];
  let size = 0;
  let received = 0;
  let cut = false;
  const source = unpack ? body.pipe(unpack) : body;
  // What breaks on the way in ends what is read here; a packed sender that stops in the middle would otherwise be waited for.
  body.on("error", (error) => source.destroy(error));
  if (unpack)
    body.on("data", (chunk: Uint8Array) => {
      received += chunk.length;
      if (received > maxBytes) source.destroy(new Failure("tool.failed", "the answer is too large even packed"));
    });
  try {
    for await (const chunk of source as AsyncIterable<Uint8Array>) {
      const room = maxBytes - size;
      chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      size += Math.min(chunk.length, room);
      if (chunk.length > room) {
        cut = true;
        break;
      }
    }
  } finally {
    body.on("error", () => {}).destroy();
    unpack?.on("error", () => {}).destroy();
  }
  return { bytes: Buffer.concat(chunks), cut };
}

/** One layer at most: a body that was packed several times is meant to surprise. */
function unpackerOf(encoding = ""): Transform | null {
  switch (encoding.trim().toLowerCase()) {
    case "":
    case "identity":
      return null;
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    default:
      throw new Failure("tool.failed", `the answer is packed as "${encoding.slice(0, 60)}", which is not understood`);
  }
}

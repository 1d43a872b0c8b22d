import { SendTrouble } from "../../kernel/channel.ts";
import { messageOf } from "../../kernel/failure.ts";

/** Nothing was said to anybody: there was no connection. */
const NEVER_REACHED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;
const LONGEST_WAIT_MS = 60 * 60_000;

/** What became of a request that has no answer. */
export function unanswered(error: unknown, whom: string): SendTrouble {
  const why = reasonOf(error);
  if (!wasReached(error)) return new SendTrouble("later", `${whom} cannot be reached: ${why}`, { isWhole: true, cause: error });
  return new SendTrouble("unclear", `${whom} has not answered: ${why}`, { cause: error });
}

function wasReached(error: unknown): boolean {
  return !NEVER_REACHED.test(codeOf(error));
}

/** What `fetch` throws says only that it failed; why stands in its cause, which may hold one for each address that was tried. */
export function reasonOf(error: unknown): string {
  return codeOf(error) || messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause !== null && typeof cause === "object" && "code" in cause ? cause.code : undefined;
  return typeof code === "string" ? code : "";
}

/** How long the other side asks to wait: in seconds, or until a date. */
export function waitAskedFor(headers: Headers, now: number): number | undefined {
  const asked = headers.get("retry-after")?.trim();
  if (!asked) return undefined;
  const ms = /^\d+$/.test(asked) ? Number(asked) * 1_000 : Date.parse(asked) - now;
  return ms >= 0 ? Math.min(ms, LONGEST_WAIT_MS) : undefined;
}

/** The beginning of an answer; the rest is not waited for. */
export async function shortText(response: Response, maxBytes = 65_536): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= maxBytes) break;
  }
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, maxBytes));
}

/** Ends with an error where there is more than was agreed. */
export function capped(stream: ReadableStream<Uint8Array>, maxBytes: number): ReadableStream<Uint8Array> {
  let size = 0;
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        size += chunk.length;
        if (size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`);
        controller.enqueue(chunk);
      },
    }),
  );
}

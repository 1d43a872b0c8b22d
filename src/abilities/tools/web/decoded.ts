/** How far into a page it may say how it is written. */
const DECLARED_WITHIN = 2_048;

/** Bytes as text, by what the sender says of them or the page of itself; UTF-8 where nobody says, and for whatever is not known. */
export function decoded(bytes: Uint8Array, contentType: string): string {
  const beginning = Buffer.from(bytes.subarray(0, DECLARED_WITHIN)).toString("latin1");
  const named = /charset\s*=\s*["']?([\w.:-]+)/i;
  const label = named.exec(contentType)?.[1] ?? named.exec(/<meta[^>]*charset[^>]*>/i.exec(beginning)?.[0] ?? "")?.[1] ?? "utf-8";
  try {
    return new TextDecoder(label).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

export const CLAIMS_URI = "guildhall://claims";
export const MAIL_URI = "guildhall://mail";
export const ENTRY_TEMPLATE = "guildhall://pools/{pool}/{key}";

export type ResourceName =
  | { readonly kind: "claims" }
  | { readonly kind: "mail" }
  | { readonly kind: "entry"; readonly pool: string; readonly key: string };

export function entryUri(pool: string, key: string): string {
  return `guildhall://pools/${encodeURIComponent(pool)}/${encodeURIComponent(key)}`;
}

/** By the one name that changes are told under, whichever characters of it somebody has encoded. */
export function canonicalUri(uri: string): string {
  const name = parseUri(uri);
  return name?.kind === "entry" ? entryUri(name.pool, name.key) : uri;
}

/** Undefined for what is none of ours. */
export function parseUri(uri: string): ResourceName | undefined {
  if (uri === CLAIMS_URI) return { kind: "claims" };
  if (uri === MAIL_URI) return { kind: "mail" };
  const [, pool, key] = /^guildhall:\/\/pools\/([^/?#]+)\/([^?#]+)$/.exec(uri) ?? [];
  if (!pool || !key) return undefined;
  try {
    return { kind: "entry", pool: decodeURIComponent(pool), key: decodeURIComponent(key) };
  } catch {
    return undefined;
  }
}

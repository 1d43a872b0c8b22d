import { Failure } from "../../kernel/failure.ts";

export function etag(version: number): string {
  return `"${version}"`;
}

/** `If-Match: "3"` and `If-None-Match: *`, as the condition of a write. */
export function wantedVersion(header: (name: string) => string | undefined): { readonly ifVersion?: number | null } {
  const match = header("if-match");
  const noneMatch = header("if-none-match");
  if (match !== undefined && noneMatch !== undefined)
    throw new Failure("request.malformed", "If-Match and If-None-Match cannot both hold; send one of them");
  if (noneMatch !== undefined) {
    if (noneMatch.trim() !== "*") throw new Failure("request.malformed", "If-None-Match: expected *");
    return { ifVersion: null };
  }
  if (match === undefined) return {};
  const version = /^\s*(?:W\/)?"?(\d{1,15})"?\s*$/.exec(match)?.[1];
  if (version === undefined || Number(version) === 0)
    throw new Failure("request.malformed", 'If-Match: expected one version, for example "3"');
  return { ifVersion: Number(version) };
}

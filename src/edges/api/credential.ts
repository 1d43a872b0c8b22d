import { hash, timingSafeEqual } from "node:crypto";
import { type Caller, OPERATOR } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";

/** Who a token stands for. */
export interface Credential {
  readonly caller: Caller;
  /** What can be revoked; null for the operator's own token, which is a file. */
  readonly tokenId: string | null;
}

/** Undefined: no such token, or no longer. */
export type Authenticate = (token: string) => Promise<Credential | undefined>;

export function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(header ?? "")?.[1];
}

export async function identified(authenticate: Authenticate, header: string | undefined): Promise<Credential & { readonly token: string }> {
  const token = bearerOf(header);
  const credential = token === undefined ? undefined : await authenticate(token);
  if (token === undefined || !credential)
    throw new Failure("request.unauthenticated", token === undefined ? "a bearer token is needed" : "this token is not valid");
  return { ...credential, token };
}

/** The token of `<home>/operator.token`, and otherwise whoever the next one knows. */
export function operatorOr(operatorToken: string, others: Authenticate): Authenticate {
  const expected = digest(operatorToken);
  // Digests have one length, so that the comparison tells nothing about the token's.
  return async (token) => (timingSafeEqual(digest(token), expected) ? { caller: OPERATOR, tokenId: null } : others(token));
}

function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

import { type GlobalOptions, harmless, print } from "./terminal.ts";

export interface NewTokenOptions extends GlobalOptions {
  readonly scope: string;
  readonly name?: string;
}

/** The token alone on stdout, so that a script can keep it. */
export async function createToken(options: NewTokenOptions): Promise<number> {
  const { createTokenAt } = await import("../daemon/local-tokens.ts");
  const { id, token, scope } = await createTokenAt(options, { scope: options.scope, name: options.name });
  print(options.json ? JSON.stringify({ id, token, scope, name: options.name ?? null }) : token);
  if (!options.json) process.stderr.write(`${id} · ${scope} · shown this once; revoke it with: guildhall token revoke ${id}\n`);
  return 0;
}

export async function listTokens(options: GlobalOptions): Promise<number> {
  const { listTokensAt } = await import("../daemon/local-tokens.ts");
  const tokens = await listTokensAt(options);
  if (options.json) print(JSON.stringify({ tokens }));
  else
    for (const { id, scope, name, revokedAt } of tokens)
      print([id, scope, harmless(name ?? ""), revokedAt === null ? "" : "revoked"].join("  ").trimEnd());
  return 0;
}

export async function revokeToken(id: string, options: GlobalOptions): Promise<number> {
  const { revokeTokenAt } = await import("../daemon/local-tokens.ts");
  const token = await revokeTokenAt(options, id);
  print(options.json ? JSON.stringify(token) : `${token.id} (${token.scope}) is revoked`);
  return 0;
}

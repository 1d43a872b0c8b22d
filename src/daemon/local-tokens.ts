import { mkdirSync } from "node:fs";
import { type CreatedToken, newToken, type Token } from "../contract/tokens.ts";
import { OPERATOR } from "../kernel/caller.ts";
import { systemClock } from "../kernel/clock.ts";
import { Failure } from "../kernel/failure.ts";
import { idSource } from "../kernel/ids.ts";
import { systemRandom } from "../kernel/random.ts";
import { Access } from "../records/access/access.ts";
import { AgentRegistry } from "../records/agents/registry.ts";
import { revisionOf } from "../records/agents/revision.ts";
import type { Whereabouts } from "../settings/home.ts";
import { loadSettings } from "../settings/load-settings.ts";
import { openStore } from "../store/store.ts";

/** Tokens, straight in the store: whether or not a daemon runs. A running one asks the same store, and knows within a second. */

export function createTokenAt(
  where: Whereabouts,
  wanted: { readonly scope: string; readonly name?: string | undefined },
): Promise<CreatedToken> {
  const checked = newToken.safeParse(wanted);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    throw new Failure("usage.wrong", `--${issue?.path.join(".")}: ${issue?.message}`);
  }
  return withAccess(where, (access) => access.create(OPERATOR, checked.data));
}

export function listTokensAt(where: Whereabouts): Promise<Token[]> {
  return withAccess(where, (access) => access.list());
}

export function revokeTokenAt(where: Whereabouts, idPrefix: string): Promise<Token> {
  return withAccess(where, (access) => access.revoke(OPERATOR, idPrefix));
}

async function withAccess<T>(where: Whereabouts, work: (access: Access) => Promise<T>): Promise<T> {
  const settings = loadSettings(where, process.env);
  const { home, storeLocation } = settings;
  if (storeLocation.startsWith("sqlite:")) mkdirSync(home, { recursive: true, mode: 0o700 });
  const store = await openStore(storeLocation);
  try {
    return await work(new Access(store, new AgentRegistry(revisionOf(settings, 0)), idSource(systemClock, systemRandom), systemRandom));
  } finally {
    await store.close();
  }
}

import type { DaemonAddress } from "../contract/wire.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { readDaemonFile } from "./daemon-file.ts";
import { readOperatorToken } from "./operator-token.ts";

/** By itself, since commands that only ask a daemon should not load what a daemon needs. */

export function homePath(where: Whereabouts): string {
  return homeOf(where, process.env);
}

/** Where a daemon of this home would answer, and the token it would take. */
export function findDaemon(where: Whereabouts): { readonly address: DaemonAddress; readonly token: string } | undefined {
  const home = homeOf(where, process.env);
  const address = readDaemonFile(home);
  const token = readOperatorToken(home);
  return address && token ? { address, token } : undefined;
}

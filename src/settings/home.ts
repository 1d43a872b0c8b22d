import { homedir } from "node:os";
import { join, resolve } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What was said on the command line, or by the program that embeds us. */
export interface Whereabouts {
  readonly home?: string | undefined;
  readonly config?: string | undefined;
}

export function homeOf(where: Whereabouts, environment: Environment): string {
  return resolve(where.home || environment.GUILDHALL_HOME || join(homedir(), ".guildhall"));
}

import { chmodSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../kernel/random.ts";

const BYTES = 32;

const fileOf = (home: string): string => join(home, "operator.token");

/** Undefined where there is none, and where what is there is too short to be one. */
export function readOperatorToken(home: string): string | undefined {
  try {
    const token = readFileSync(fileOf(home), "utf8").trim();
    return /^\S{32,}$/.test(token) ? token : undefined;
  } catch {
    return undefined;
  }
}

/** The operator's token, made at the first start. Called with the home locked, so that there is only ever one. */
export function ensureOperatorToken(home: string, random: Random): string {
  const file = fileOf(home);
  const known = readOperatorToken(home);
  if (known) {
    chmodSync(file, 0o600);
    return known;
  }
  const token = Buffer.from(random.bytes(BYTES)).toString("base64url");
  writeFileSync(`${file}.partial`, `${token}\n`, { mode: 0o600 });
  renameSync(`${file}.partial`, file);
  return token;
}

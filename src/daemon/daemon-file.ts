import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DaemonAddress, daemonAddress } from "../contract/wire.ts";

const fileOf = (home: string): string => join(home, "daemon.json");

/** Appears whole or not at all. */
export function writeDaemonFile(home: string, address: DaemonAddress): void {
  const file = fileOf(home);
  writeFileSync(`${file}.partial`, `${JSON.stringify(address)}\n`, { mode: 0o600 });
  renameSync(`${file}.partial`, file);
}

/** What the last daemon said of itself; after a kill -9 it is still there. Whether somebody answers is for the reader to find out. */
export function readDaemonFile(home: string): DaemonAddress | undefined {
  try {
    return daemonAddress.parse(JSON.parse(readFileSync(fileOf(home), "utf8")));
  } catch {
    return undefined;
  }
}

export function removeDaemonFile(home: string): void {
  rmSync(fileOf(home), { force: true });
}

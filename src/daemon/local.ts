import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Failure, isFailure } from "../kernel/failure.ts";
import type { Whereabouts } from "../settings/home.ts";
import { loadSettings } from "../settings/load-settings.ts";
import { lockHome } from "./home-lock.ts";

/** What commands do on the home's files, without a daemon. */

/** One moment of the whole store. A daemon may run meanwhile. */
export async function backupHome(
  where: Whereabouts,
  file: string,
): Promise<{ readonly file: string; readonly rows: number; readonly tables: number }> {
  const { storeLocation } = loadSettings(where, process.env);
  const path = storeLocation.startsWith("sqlite:") ? storeLocation.slice("sqlite:".length) : null;
  if (path !== null && !existsSync(path)) throw new Failure("store.missing", `there is no ${path} to back up`);
  const { openStore } = await import("../store/store.ts");
  const store = await openStore(storeLocation);
  const target = resolve(file);
  try {
    return { file: target, ...(await store.backup(target)) };
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (isFailure(error) || !syscall) throw error;
    throw new Failure("backup.unwritable", `${target} cannot be written (${code})`, { cause: error });
  } finally {
    await store.close();
  }
}

/** Into an empty home, and only while no daemon runs on it. */
export async function restoreHome(where: Whereabouts, file: string): Promise<{ readonly rows: number }> {
  const { home, storeLocation } = loadSettings(where, process.env);
  const lock = lockHome(home);
  try {
    const { restoreBackup } = await import("../store/restore-backup.ts");
    return { rows: await restoreBackup(storeLocation, resolve(file)) };
  } finally {
    lock.release();
  }
}

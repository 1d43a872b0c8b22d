import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { sha256 } from "../kernel/canonical-json.ts";
import { Failure, isFailure } from "../kernel/failure.ts";
import { unwritable, withConfigLock } from "./config-lock.ts";
import { type ConfigProblem, configFailure } from "./config-problem.ts";
import { type Environment, homeOf, type Whereabouts } from "./home.ts";
import { loadSettings, type Settings } from "./load-settings.ts";
import { editsToKeepOwn } from "./own-sections.ts";
import { type Edit, editYaml } from "./yaml-edit.ts";

export interface EditedConfig {
  readonly file: string;
  /** Of the text that is there now: what a daemon reports once it has applied it. */
  readonly hash: string;
  readonly changed: boolean;
  /** Where the text before is kept; null where there was none, and where nothing changed. */
  readonly backup: string | null;
}

/** What to edit in place of a text in the file that has become old; what the file says of this machine stays. */
export interface EditBase {
  readonly text: string;
  /** The hash of the old one: any other in the file is somebody's who must not lose it. */
  readonly instead: string;
  /** It is to be written also where there is nothing to change in it. */
  readonly isWanted?: boolean;
}

const BACKUPS_KEPT = 5;
const HASH_SHOWN = 12;
const TRIES = 5;

/** Where the config of these whereabouts is or would be. */
export function configFileOf(where: Whereabouts, environment: Environment): string {
  return where.config ? resolve(where.config) : join(homeOf(where, environment), "guildhall.yaml");
}

/**
 * Changes the config where it stands. Of several who edit at once, each finds what the others have written; what a person saves in the
 * meantime is not overwritten. Nothing replaces the file unless the same loader that a daemon uses takes it without a new error. Stopped
 * anywhere, the file is the one before or the one after.
 */
export async function editConfig(
  where: Whereabouts,
  environment: Environment,
  decide: (now: Settings) => readonly Edit[],
  base?: EditBase,
): Promise<EditedConfig> {
  const file = followed(configFileOf(where, environment));
  if (!where.config) makeFolder(dirname(file));
  for (let tries = 1; ; tries++) {
    const edited = await withConfigLock(file, () => editOnce(file, where, environment, decide, base));
    if (edited) return edited;
    if (tries === TRIES) throw new Failure("config.changed", `somebody else has changed ${file} meanwhile`);
  }
}

/** Undefined: the file was changed by somebody who does not ask for the lock. */
function editOnce(
  file: string,
  where: Whereabouts,
  environment: Environment,
  decide: (now: Settings) => readonly Edit[],
  base: EditBase | undefined,
): EditedConfig | undefined {
  const before = readIfThere(file);
  if (base && sha256(before ?? "") !== base.instead) return undefined;
  const from = base ? editYaml(base.text, editsToKeepOwn(base.text, before ?? "", file)) : before;
  const settings = loadSettings(where, environment, base ? { text: from as string } : {});
  if (settings.configText !== (from ?? "")) return undefined;
  const after = editYaml(from ?? "", decide(settings));
  const hash = sha256(after);
  if (after === before || (base && after === from && !base.isWanted)) return { file, hash, changed: false, backup: null };
  const fresh = join(dirname(file), `.${basename(file)}.new`);
  try {
    refuseNewErrors(settings, loadSettings(where, environment, { text: after }));
    writeWhole(fresh, after, file);
    const backup = before === undefined ? null : keepBackup(file, before);
    if (readIfThere(file) !== before) return undefined;
    renameSync(fresh, file);
    syncFolder(dirname(file));
    return { file, hash, changed: true, backup };
  } catch (error) {
    throw isFailure(error) ? error : unwritable(file, error);
  } finally {
    rmSync(fresh, { force: true });
  }
}

/** A link is followed: whoever keeps the file elsewhere wants it changed there. */
function followed(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unwritable(file, error);
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unwritable(folder, error);
  }
}

/** With the rights of the file that it is to replace, or that it is a copy of. */
function writeWhole(path: string, text: string, like: string): void {
  rmSync(path, { force: true });
  const known = statSync(like, { throwIfNoEntry: false });
  const handle = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    writeFileSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  if (!known) return;
  chmodSync(path, known.mode & 0o777);
  try {
    chownSync(path, known.uid, known.gid);
  } catch {
    // Only the administrator may give files away; then it is whoever edits who owns it.
  }
}

/** A rename lasts once its folder is written. Where folders cannot be opened, the system takes care of it. */
function syncFolder(folder: string): void {
  let handle: number | undefined;
  try {
    handle = openSync(folder, constants.O_RDONLY);
    fsyncSync(handle);
  } catch {
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** Where a text that was replaced is kept: under its hash, so that the same text twice is one backup. */
export function backupOf(file: string, hash: string): string {
  return `${followed(file)}.bak-${hash.slice(0, HASH_SHOWN)}`;
}

function keepBackup(file: string, text: string): string {
  const folder = dirname(file);
  const prefix = `${basename(file)}.bak-`;
  const backup = backupOf(file, sha256(text));
  writeWhole(backup, text, file);
  const now = new Date();
  utimesSync(backup, now, now);
  const all = readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .map((name) => ({ path: join(folder, name), at: statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.at - a.at);
  for (const { path } of all.filter((kept) => kept.path !== backup).slice(BACKUPS_KEPT - 1)) rmSync(path, { force: true });
  return backup;
}

/** What was broken before is not the edit's fault, and must not keep anybody from pausing another agent. */
function refuseNewErrors(before: Settings, after: Settings): void {
  const known = new Set([...before.quarantined.values()].flat().map(identityOf));
  const fresh = [...after.quarantined.values()].flat().filter((problem) => !known.has(identityOf(problem)));
  if (fresh.length > 0) throw configFailure(fresh);
}

function identityOf({ code, path, message }: ConfigProblem): string {
  return JSON.stringify([code, path, message]);
}

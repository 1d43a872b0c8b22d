import { type BigIntStats, constants, type Dirent } from "node:fs";
import { type FileHandle, lstat, mkdir, open, opendir, readlink, realpath, rename, rmdir, symlink, unlink } from "node:fs/promises";
import { Handle } from "./handle.ts";
import { type JailKind, O_NOFOLLOW_ANY, O_PATH } from "./jail-kind.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

const AT_A_TIME = 256;

export type EntryKind = "file" | "directory" | "link" | "other";

/** Something by its name in a directory, held: whatever happens to the name, this stays what it is. */
export interface HeldEntry {
  readonly kind: EntryKind;
  readonly stats: BigIntStats;
  /** As it is now, by the handle and not by the name. */
  again(): Promise<BigIntStats>;
  /** Whether the name it was opened by has been one of its names from then on until now; undefined: the system does not say. */
  keptItsName(): Promise<boolean | undefined>;
  /** Only of files. The handle is the caller's to close. */
  openForReading(): Promise<FileHandle>;
  close(): Promise<void>;
}

/**
 * An open directory. What is below it is reached by one name at a time, and never through a link: a name that is swapped in between
 * leads nowhere else, because the way down is made of handles and not of paths. Names are single components; callers see to that.
 */
export class Directory {
  readonly #handle: Handle;
  readonly #kind: JailKind;
  readonly #base: string;
  readonly #isBorrowed: boolean;
  readonly stats: BigIntStats;

  private constructor(kind: JailKind, handle: Handle, path: string, stats: BigIntStats, isBorrowed = false) {
    this.#kind = kind;
    this.#handle = handle;
    this.#base = kind === "proc-handles" ? `/proc/self/fd/${handle.number}` : path;
    this.stats = stats;
    this.#isBorrowed = isBorrowed;
  }

  /** The place that an operator's path leads to, through links if there are any. */
  static async at(kind: JailKind, path: string): Promise<Directory> {
    if (kind === "proc-handles") return Directory.#hold(kind, path, O_PATH | O_DIRECTORY);
    // What is below is opened by this path, in which no link is followed any more: so it must have none.
    return Directory.#hold(kind, await realpath(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW_ANY);
  }

  /** The same at once, of a real path, for folders on the daemon's own disk. */
  static atOnce(kind: JailKind, realPath: string): Directory {
    const flags = kind === "proc-handles" ? O_PATH : O_RDONLY | O_NOFOLLOW_ANY;
    return Directory.#holdAtOnce(kind, realPath, flags | O_DIRECTORY);
  }

  static async #hold(kind: JailKind, path: string, flags: number): Promise<Directory> {
    const handle = await Handle.open(path, flags);
    try {
      return new Directory(kind, handle, path, await handle.stat());
    } catch (error) {
      handle.close();
      throw error;
    }
  }

  static #holdAtOnce(kind: JailKind, path: string, flags: number): Directory {
    const handle = Handle.openAtOnce(path, flags);
    try {
      return new Directory(kind, handle, path, handle.statAtOnce());
    } catch (error) {
      handle.close();
      throw error;
    }
  }

  /** The same directory for somebody who closes what it gets; it ends with this one. */
  borrowed(): Directory {
    return new Directory(this.#kind, this.#handle, this.#base, this.stats, true);
  }

  /** Tells two directories apart, for as long as one of them is held. */
  get identity(): string {
    return identityOf(this.stats);
  }

  /** ENOTDIR or ELOOP for a link. */
  directory(name: string): Promise<Directory> {
    return Directory.#hold(this.#kind, this.#pathOf(name), this.#flags);
  }

  directoryAtOnce(name: string): Directory {
    return Directory.#holdAtOnce(this.#kind, this.#pathOf(name), this.#flags);
  }

  /**
   * The same for a folder that programs could make a place that answers late, by mounting something there: at once unless they have. A
   * handle that only names asks nothing of what is mounted.
   */
  async directoryUnlessMounted(name: string): Promise<Directory> {
    if (this.#kind !== "proc-handles") return this.directory(name);
    const path = this.#pathOf(name);
    const handle = Handle.openAtOnce(path, this.#flags);
    try {
      const mount = handle.mountAtOnce();
      const isOurs = mount !== undefined && mount === this.#handle.mountAtOnce();
      return new Directory(this.#kind, handle, path, isOurs ? handle.statAtOnce() : await handle.stat());
    } catch (error) {
      handle.close();
      throw error;
    }
  }

  get #flags(): number {
    return O_DIRECTORY | (this.#kind === "proc-handles" ? O_PATH | O_NOFOLLOW : O_RDONLY | O_NOFOLLOW_ANY);
  }

  parent(): Promise<Directory> {
    return Directory.#hold(this.#kind, this.#pathOf(".."), (this.#kind === "proc-handles" ? O_PATH : O_RDONLY) | O_DIRECTORY);
  }

  async entry(name: string): Promise<HeldEntry> {
    if (this.#kind !== "proc-handles") return this.#entryWithoutPath(name);
    const handle = await Handle.open(this.#pathOf(name), O_PATH | O_NOFOLLOW);
    try {
      const stats = await handle.stat();
      return {
        kind: kindOf(stats),
        stats,
        again: () => handle.stat(),
        keptItsName: () => keptItsName(handle.number, name),
        // The handle's own name leads to the very thing that was looked at, whatever its name in the directory is by now.
        openForReading: () => open(`/proc/self/fd/${handle.number}`, O_RDONLY | O_NONBLOCK),
        close: async () => handle.close(),
      };
    } catch (error) {
      handle.close();
      throw error;
    }
  }

  /** Where nothing can be named without opening it, only what looks like a file is opened; the handle then says what it is. */
  async #entryWithoutPath(name: string): Promise<HeldEntry> {
    const path = this.#pathOf(name);
    const seen = await lstat(path, { bigint: true });
    const openAgain = (): Promise<FileHandle> => open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW_ANY);
    if (kindOf(seen) !== "file")
      return {
        kind: kindOf(seen),
        stats: seen,
        again: async () => seen,
        keptItsName: unknown,
        openForReading: openAgain,
        close: async () => {},
      };
    const handle = await openAgain();
    try {
      const stats = await handle.stat({ bigint: true });
      return {
        kind: kindOf(stats),
        stats,
        again: () => handle.stat({ bigint: true }),
        keptItsName: unknown,
        openForReading: async () => {
          const second = await openAgain();
          if (identityOf(await second.stat({ bigint: true })) === identityOf(stats)) return second;
          await second.close();
          throw Object.assign(new Error("the file was replaced"), { code: "ENOENT" });
        },
        close: () => handle.close(),
      };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  lstat(name: string): Promise<BigIntStats> {
    return lstat(this.#pathOf(name), { bigint: true });
  }

  linkText(name: string): Promise<string> {
    return readlink(this.#pathOf(name));
  }

  /** A new link and nothing else: EEXIST for whatever is there. */
  link(name: string, words: string): Promise<void> {
    return symlink(words, this.#pathOf(name));
  }

  /** Where it lies at this moment, without any link. */
  realPath(): Promise<string> {
    return this.#kind === "proc-handles" ? readlink(this.#base) : realpath(this.#base);
  }

  /** A new file and nothing else: EEXIST for whatever is there, a dangling link included. */
  create(name: string, mode: number): Promise<FileHandle> {
    const never = this.#kind === "proc-handles" ? O_NOFOLLOW : O_NOFOLLOW_ANY;
    return open(this.#pathOf(name), O_WRONLY | O_CREAT | O_EXCL | never, mode);
  }

  /** Replaces what has the new name, a link itself and not what it points to. */
  async move(name: string, to: Directory, newName: string): Promise<void> {
    await rename(this.#pathOf(name), to.#pathOf(newName));
  }

  async make(name: string, mode: number): Promise<void> {
    await mkdir(this.#pathOf(name), { mode });
  }

  async unlink(name: string): Promise<void> {
    await unlink(this.#pathOf(name));
  }

  async removeEmpty(name: string): Promise<void> {
    await rmdir(this.#pathOf(name));
  }

  /** So that what was renamed here is still here after the power failed. */
  async sync(): Promise<void> {
    const handle = await open(this.#pathOf("."), O_RDONLY | O_DIRECTORY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  /** In no order, a few at a time. Names that are no text are undefined: no path can name them. */
  async *entries(): AsyncGenerator<{ readonly name: string | undefined; readonly kind: EntryKind }> {
    for await (const entry of await opendir(this.#pathOf("."), { encoding: "buffer" as BufferEncoding, bufferSize: AT_A_TIME })) {
      const raw = entry.name as unknown as Buffer;
      const name = raw.toString("utf8");
      const known = Buffer.from(name, "utf8").equals(raw);
      yield known ? { name, kind: await this.#kindOfEntry(entry, name) } : { name: undefined, kind: "other" };
    }
  }

  async #kindOfEntry(entry: Dirent, name: string): Promise<EntryKind> {
    if (entry.isFile() || entry.isDirectory() || entry.isSymbolicLink()) return kindOf(entry);
    // Some file systems do not say.
    return this.lstat(name).then(kindOf, () => "other");
  }

  async close(): Promise<void> {
    if (!this.#isBorrowed) this.#handle.close();
  }

  #pathOf(name: string): string {
    this.#handle.mustBeOpen();
    return `${this.#base}/${name}`;
  }
}

export function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

const DELETED = " (deleted)";

/**
 * A handle remembers the name it was opened by, follows it when it is renamed, and never forgets that it was removed, though the same
 * name be made again.
 */
async function keptItsName(handle: number, name: string): Promise<boolean | undefined> {
  // A removed "x" would look like an "x (deleted)" that is there.
  if (name.endsWith(DELETED)) return undefined;
  const shown = await readlink(`/proc/self/fd/${handle}`).catch(() => undefined);
  return shown?.endsWith(`/${name}`);
}

const unknown = async (): Promise<undefined> => undefined;

function kindOf(of: Pick<BigIntStats | Dirent, "isFile" | "isDirectory" | "isSymbolicLink">): EntryKind {
  if (of.isFile()) return "file";
  if (of.isDirectory()) return "directory";
  return of.isSymbolicLink() ? "link" : "other";
}

/** Closes what was opened, whatever comes of it. */
export async function during<Held extends { close(): Promise<void> }, Result>(
  opening: Promise<Held>,
  body: (held: Held) => Promise<Result>,
): Promise<Result> {
  const held = await opening;
  try {
    return await body(held);
  } finally {
    await held.close();
  }
}

import { Failure } from "../../kernel/failure.ts";
import { type Directory, during, type EntryKind } from "./directory.ts";
import type { LinkSearch } from "./hard-links.ts";
import { type FileContent, type Part, readFile } from "./read-file.ts";
import { receiveFile } from "./receive-file.ts";
import { about, refuseKind } from "./refusals.ts";
import { namedBy, type Root, SHARED, type WorkspaceParts } from "./roots.ts";
import { type Found, type Onward, removeTree, walkBelow } from "./walk.ts";
import { descend, findFile, type Making } from "./way-down.ts";
import { quoted, usableName } from "./workspace-path.ts";
import { isPartial, removeAbandoned, type Written, writeFile } from "./write-file.ts";

export interface Listing {
  /** By name. */
  readonly entries: readonly { readonly name: string; readonly kind: EntryKind }[];
  /** There are more than one listing may hold. */
  readonly more: boolean;
  /** Entries left out because no path can name them. */
  readonly unusable: number;
}

export interface PlaceInfo {
  readonly kind: EntryKind;
  readonly size: number;
  readonly modifiedAt: number;
  readonly executable: boolean;
}

export interface Visited {
  readonly path: string;
  readonly kind: EntryKind;
  /** While it is visited; refused like any other read. */
  read(part?: Part): Promise<FileContent>;
}

/** The files that one agent may use. Every verb opens what it needs anew and closes it; there is nothing to end. */
export class Workspace {
  readonly #parts: WorkspaceParts;
  readonly #search: LinkSearch;

  constructor(parts: WorkspaceParts) {
    this.#parts = parts;
    this.#search = { entries: parts.limits.walkEntries, depth: parts.limits.depth, clock: parts.clock };
  }

  read(path: string, part: Part = {}): Promise<FileContent> {
    return this.#verb(path, async () => {
      const { root, components } = this.#below(path, "a file");
      return during(root.open(), async (top) => {
        const { directory, name } = await findFile({ top, places: [root.place, root.seenAs], path }, components);
        return during(Promise.resolve(directory), () => readFile(top, directory, name, path, part, this.#readLimits));
      });
    });
  }

  write(path: string, content: string | Uint8Array): Promise<Written> {
    const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
    const { fileBytes } = this.#parts.limits;
    return this.#verb(path, () =>
      this.#changing(path, true, async (root, directory, name, { secluded }) => {
        if (bytes.length > fileBytes)
          throw new Failure("workspace.too_large", `${bytes.length} bytes for ${quoted(path)}; a file has at most ${fileBytes}`);
        return writeFile(root, directory, name, path, bytes, { secluded, newId: this.#parts.newId, search: this.#search });
      }),
    );
  }

  /**
   * A new file of what comes piece by piece, up to `maxBytes`. It takes as long as whoever sends, so that others are not made to wait for
   * it; what the pieces throw is thrown as it is.
   */
  async receive(path: string, pieces: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Written> {
    let broken: { readonly error: unknown } | undefined;
    const watched = async function* (): AsyncGenerator<Uint8Array> {
      try {
        yield* pieces;
      } catch (error) {
        broken = { error };
        throw error;
      }
    };
    try {
      return await this.#changing(path, true, (_root, directory, name, { secluded }) =>
        receiveFile(directory, name, path, watched(), { maxBytes, secluded, newId: this.#parts.newId }),
      );
    } catch (error) {
      throw broken ? broken.error : error;
    }
  }

  list(path = "."): Promise<Listing> {
    return this.#verb(path, async () => {
      const named = namedBy(path, this.#parts);
      if (named === "shared") return this.#sharedNames();
      const hidesShared = named.root === this.#parts.own && named.components.length === 0 && this.#parts.shared.size > 0;
      return this.#reach(named.root, named.components, path, async (directory) => {
        const listing = await this.#listDirectory(directory, hidesShared ? 1 : 0, named.root.writable);
        if (!hidesShared) return listing;
        const others = listing.entries.filter(({ name }) => name !== SHARED);
        return { ...listing, entries: sorted([...others, { name: SHARED, kind: "directory" }]) };
      });
    });
  }

  stat(path: string): Promise<PlaceInfo> {
    return this.#verb(path, async () => {
      const named = namedBy(path, this.#parts);
      if (named === "shared") return { kind: "directory", size: 0, modifiedAt: 0, executable: true };
      const name = named.components.at(-1);
      return this.#reach(named.root, named.components.slice(0, -1), path, async (directory) => {
        if (name === undefined) return infoOf("directory", directory.stats);
        return during(directory.entry(name), async ({ kind, stats }) => infoOf(kind, stats));
      });
    });
  }

  /** With the folders above it. */
  makeDirectory(path: string): Promise<{ readonly created: boolean }> {
    return this.#verb(path, async () => {
      const named = namedBy(path, this.#parts);
      if (named === "shared") return { created: false };
      this.#refuseReadOnly(named.root, path);
      let created = false;
      const onMade = (): void => {
        created = true;
      };
      await this.#reach(named.root, named.components, path, async () => {}, { mode: modeOf(named.root), onMade });
      return { created };
    });
  }

  /** A link is removed itself, wherever it points. */
  remove(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    return this.#verb(path, () =>
      this.#changing(path, false, async (_root, directory, name) => {
        const kind = await during(directory.entry(name), async (entry) => entry.kind);
        if (kind !== "directory") return directory.unlink(name);
        if (!options.recursive) return directory.removeEmpty(name);
        const { walkEntries, depth } = this.#parts.limits;
        if (!(await removeTree(directory, name, { left: walkEntries, depth })))
          throw new Failure("workspace.too_large", `${quoted(path)} holds more than can be removed at once; some of it is left`, {
            hint: `Remove it again; what lies deeper than ${depth} folders or has a name that is no text, by itself.`,
          });
      }),
    );
  }

  /** Replaces a file that has the new name. */
  rename(from: string, to: string): Promise<void> {
    return this.#verb(from, () =>
      this.#changing(from, false, async (_root, source, name) => {
        const kind = await during(source.entry(name), async (entry) => entry.kind);
        // Elsewhere a link may mean something else, to programs that follow it.
        if (kind === "link" || kind === "other") throw refuseKind(from, kind, "a file or folder");
        await this.#changing(to, true, (_other, target, newName) => source.move(name, target, newName));
      }),
    );
  }

  /** Everything below a path, shared folders last. `visit` answers whether to go on; `more`: not everything was visited. */
  walk(path: string, visit: (visited: Visited) => Promise<Onward>): Promise<{ readonly more: boolean }> {
    return about(path, async () => {
      const { own, shared, limits } = this.#parts;
      const named = namedBy(path, this.#parts);
      const budget = { left: limits.walkEntries, depth: limits.depth };
      const below = async (root: Root, components: readonly string[], prefix: readonly string[]): Promise<boolean> =>
        this.#reach(root, components, path, (start, top) =>
          walkBelow(start, budget, (found) => {
            if (root === own && prefix.length === 0 && found.components[0] === SHARED && shared.size > 0) return Promise.resolve("past");
            return visit(this.#visited(top, found, [...prefix, ...found.components].join("/")));
          }),
        );
      if (named !== "shared" && !(await below(named.root, named.components, this.#shown(named.root, named.components))))
        return { more: true };
      const wholeView = named === "shared" || (named.root === own && named.components.length === 0);
      for (const [name, root] of wholeView ? shared : []) if (!(await below(root, [], [SHARED, name]))) return { more: true };
      return { more: false };
    });
  }

  #verb<Result>(path: string, body: () => Promise<Result>): Promise<Result> {
    return this.#parts.turnstile.pass(() => about(path, body));
  }

  get #readLimits(): LinkSearch & { readonly fileBytes: number } {
    return { ...this.#search, fileBytes: this.#parts.limits.fileBytes };
  }

  #visited(top: Directory, { directory, name, kind }: Found, path: string): Visited {
    return { path, kind, read: (part = {}) => about(path, () => readFile(top, directory, name, path, part, this.#readLimits)) };
  }

  /** The components as the agent writes them. */
  #shown(root: Root, components: readonly string[]): readonly string[] {
    const name = [...this.#parts.shared].find(([, shared]) => shared === root)?.[0];
    return name === undefined ? components : [SHARED, name, ...components];
  }

  /** A folder, and the root it is below. */
  #reach<Result>(
    root: Root,
    components: readonly string[],
    path: string,
    body: (directory: Directory, top: Directory) => Promise<Result>,
    making?: Making,
  ): Promise<Result> {
    return during(root.open(), (top) =>
      during(descend({ top, places: [root.place, root.seenAs], path }, components, making), (directory) => body(directory, top)),
    );
  }

  /** Something in a root, and not the root itself. */
  #below(path: string, wanted: string): { readonly root: Root; readonly components: readonly string[] } {
    const named = namedBy(path, this.#parts);
    if (named === "shared" || named.components.length === 0) throw refuseKind(path, "directory", wanted);
    return named;
  }

  /** Of the last name itself, be it a link. */
  #changing<Result>(
    path: string,
    makesParents: boolean,
    body: (root: Directory, directory: Directory, name: string, of: Root) => Promise<Result>,
  ): Promise<Result> {
    return about(path, async () => {
      const { root, components } = this.#below(path, "something to change");
      this.#refuseReadOnly(root, path);
      const making = makesParents ? { mode: modeOf(root) } : undefined;
      const name = components.at(-1) as string;
      return this.#reach(root, components.slice(0, -1), path, (directory, top) => body(top, directory, name, root), making);
    });
  }

  #refuseReadOnly(root: Root, path: string): void {
    if (!root.writable) throw new Failure("workspace.read_only", `${quoted(path)} is shared for reading only`);
  }

  #sharedNames(): Listing {
    return { entries: sorted([...this.#parts.shared.keys()].map((name) => ({ name, kind: "directory" }))), more: false, unusable: 0 };
  }

  async #listDirectory(directory: Directory, reserved: number, writable: boolean): Promise<Listing> {
    const entries: { name: string; kind: EntryKind }[] = [];
    let unusable = 0;
    let left = this.#parts.limits.walkEntries;
    for await (const { name, kind } of directory.entries()) {
      if (left-- <= 0) return { entries: sorted(entries), more: true, unusable };
      if (name === undefined || !usableName(name)) unusable++;
      else if (isPartial(name)) {
        if (writable) await removeAbandoned(directory, name, this.#parts.clock.now());
      } else if (entries.length + reserved >= this.#parts.limits.listEntries) return { entries: sorted(entries), more: true, unusable };
      else entries.push({ name, kind });
    }
    return { entries: sorted(entries), more: false, unusable };
  }
}

function modeOf(root: Root): number {
  return root.secluded ? 0o700 : 0o777;
}

function sorted<Entry extends { readonly name: string }>(entries: Entry[]): Entry[] {
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function infoOf(kind: EntryKind, { size, mtimeMs, mode }: { size: bigint; mtimeMs: bigint; mode: bigint }): PlaceInfo {
  return { kind, size: Number(size), modifiedAt: Number(mtimeMs), executable: (mode & 0o100n) !== 0n };
}

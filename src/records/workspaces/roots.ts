import type { Clock } from "../../kernel/clock.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Directory } from "./directory.ts";
import type { Turnstile } from "./turnstile.ts";
import { componentsOf, quoted, startsWith } from "./workspace-path.ts";

/** A folder whose inside an agent may see. */
export interface Root {
  /** How its absolute paths begin. */
  readonly place: string;
  /** How they begin for programs in a sandbox. */
  readonly seenAs: string;
  readonly writable: boolean;
  /** New files are for this user alone; elsewhere the umask decides, because a shared folder has other readers. */
  readonly secluded: boolean;
  /** Opened anew for each use, because links may have changed; the caller closes it. */
  open(): Promise<Directory>;
}

export interface WorkspaceLimits {
  /** Of a file that is read whole or written, and of one part of a larger one. */
  readonly fileBytes: number;
  readonly listEntries: number;
  /** Entries seen by one walk, one removal, or one search for a file's other names. */
  readonly walkEntries: number;
  readonly depth: number;
}

export const WORKSPACE_LIMITS: WorkspaceLimits = { fileBytes: 10 * 1024 * 1024, listEntries: 10_000, walkEntries: 50_000, depth: 100 };

export interface WorkspaceParts {
  readonly own: Root;
  /** By their names below `shared/`. With none, `shared` is a folder like others. */
  readonly shared: ReadonlyMap<string, Root>;
  readonly limits: WorkspaceLimits;
  readonly clock: Clock;
  readonly newId: NewId;
  /** One for all workspaces. A walk does not pass it: it may use other verbs, and would wait for itself. */
  readonly turnstile: Turnstile;
}

export const SHARED = "shared";

/** What a path names: something below a root, or the folder `shared` itself, which is made of names only. */
export type Named = { readonly root: Root; readonly components: readonly string[] } | "shared";

export function namedBy(path: string, { own, shared }: Pick<WorkspaceParts, "own" | "shared">): Named {
  const { root, components } = path.startsWith("/")
    ? namedByAbsolute(path, [own, ...shared.values()])
    : { root: own, components: componentsOf(path) };
  if (root !== own || shared.size === 0 || components[0] !== SHARED) return { root, components };
  const [, name, ...below] = components;
  if (name === undefined) return "shared";
  const named = shared.get(name);
  if (!named) throw new Failure("workspace.not_found", `nothing is shared under the name ${quoted(name)}`);
  return { root: named, components: below };
}

/** The longest beginning decides: a shared folder may lie inside the workspace's path. */
function namedByAbsolute(path: string, roots: readonly Root[]): { readonly root: Root; readonly components: readonly string[] } {
  const components = componentsOf(path);
  const [best] = roots
    .flatMap((root) => [root.place, root.seenAs].map((place) => ({ root, beginning: componentsOf(place) })))
    .filter(({ beginning }) => startsWith(components, beginning))
    .sort((a, b) => b.beginning.length - a.beginning.length);
  if (!best) throw new Failure("workspace.outside", `${quoted(path)} is outside the workspace`);
  return { root: best.root, components: components.slice(best.beginning.length) };
}

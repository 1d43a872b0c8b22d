import { lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import type { SharedPath } from "../contract/config.ts";
import { type ConfigPath, errorAt, type Finding, warningAt } from "./config-problem.ts";
import { listAt, valueAt } from "./value-at.ts";

/** What a shared path is counted from, and what it must not reach. */
export interface Surroundings {
  readonly home: string;
  /** Null without a config file: then paths count from the home. */
  readonly configFile: string | null;
}

/** One shared path, resolved. */
export interface SharedFolder {
  /** Below `shared/` in the agent's view. */
  readonly name: string;
  readonly path: string;
  readonly writable: boolean;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const FIX = "Share a folder of its own, for example ./team-docs.";

export function sharedFolder({ path, mode, name }: SharedPath, around: Surroundings): SharedFolder {
  const place = placeOf(path, around);
  return { name: name ?? basename(place), path: place, writable: mode === "rw" };
}

/** Files that nobody's shared folder may hold, whatever they are called behind their links. */
export function guardedFiles({ home, configFile }: Surroundings): string[] {
  return [".env", "operator.token", "state.db"].map((name) => join(home, name)).concat(configFile ?? []);
}

/**
 * Everything that is wrong with the shared paths of the agents as written. Looks at the disk, so that links are seen through; what is
 * behind a link can change afterwards, and is looked at again at each use.
 */
export function sharedPathFindings(value: unknown, ids: readonly string[], around: Surroundings): Finding[] {
  const sharing = ids.filter((id) => listAt(value, ["agents", id, "shared_paths"]).length > 0);
  if (sharing.length === 0) return [];
  const guarded = [around.home, ...guardedFiles(around)].map(realPlace);
  const agents = realPlace(join(around.home, "agents"));
  const linked = linkedFolders(agents);
  const writable = writableFolders(value, ids, around, agents);
  return sharing.flatMap((id) => {
    const list: ConfigPath = ["agents", id, "shared_paths"];
    const names = new Set<string>();
    return listAt(value, list).flatMap((_, index): Finding[] => {
      const at = [...list, index, "path"];
      const path = valueAt(value, at);
      if (typeof path !== "string" || path === "") return [];
      const place = placeOf(path, around);
      const real = realPlace(place);
      const bad = (message: string, fix = FIX): Finding[] => [errorAt(at, "config.bad_shared_path", message, fix)];
      const name = String(valueAt(value, [...list, index, "name"]) ?? basename(place));
      if (!NAME.test(name))
        return bad(`"${name.slice(0, 100)}" cannot be its name below shared/`, "Give it a name: { path: …, name: docs }.");
      if (names.has(name))
        return bad(`two shared paths would both be called "${name}"`, "Give this one another name: { path: …, name: … }.");
      names.add(name);
      if (guarded.some((inner) => isWithin(real, inner)))
        return bad("this folder holds the home, or the files with Guildhall's settings, secrets or data");
      if (isWithin(agents, real) && !isWithin(join(agents, id), real)) return bad("this is another agent's private folder, or lies in it");
      if (linked.some((folder) => folder.id !== id && (isWithin(folder.real, real) || isWithin(real, folder.real))))
        return bad("this is where another agent's private folder really lies, or a part of it");
      // What an agent can write it can also turn into a link, on whose way to the folder we would follow it.
      if (writable.some((outer) => [place, real].some((inner) => inner !== outer && isWithin(outer, inner))))
        return bad(
          "an agent may write in the folder around this one, and could put a link in its place",
          "Share a folder beside it, or the one around it with mode: ro.",
        );
      return kindFindings(at, place);
    });
  });
}

/** Where agents put files: their workspaces, and what is shared for writing; as written, and where it really lies. */
function writableFolders(value: unknown, ids: readonly string[], around: Surroundings, agents: string): string[] {
  return ids.flatMap((id) => {
    const shared = listAt(value, ["agents", id, "shared_paths"]).flatMap((_, index) => {
      const [path, mode] = ["path", "mode"].map((key) => valueAt(value, ["agents", id, "shared_paths", index, key]));
      if (typeof path !== "string" || path === "" || mode !== "rw") return [];
      const place = placeOf(path, around);
      return [place, realPlace(place)];
    });
    return [join(agents, id, "workspace"), join(agents, id, "workspaces"), ...shared];
  });
}

function kindFindings(at: ConfigPath, place: string): Finding[] {
  const stats = statSync(place, { throwIfNoEntry: false });
  const missing = "Make the folder, or correct the path; it counts from the config file's folder.";
  if (!stats) return [warningAt(at, "config.missing_shared_path", `there is no folder ${place}`, missing)];
  return stats.isDirectory()
    ? []
    : [errorAt(at, "config.bad_shared_path", "expected a folder, found a file", "Share the folder it is in.")];
}

function placeOf(path: string, { home, configFile }: Surroundings): string {
  return resolve(configFile === null ? home : dirname(configFile), path);
}

/** Through all links; of what does not exist, from the nearest folder that does. */
function realPlace(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realPlace(above), basename(path));
  }
}

/** Private folders that are links to somewhere else. */
function linkedFolders(agents: string): { readonly id: string; readonly real: string }[] {
  return namesIn(agents).flatMap((id) => {
    const own = join(agents, id);
    const places = isLink(own) ? [own] : namesIn(own).map((name) => join(own, name));
    return places.filter(isLink).map((place) => ({ id, real: realPlace(place) }));
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function isWithin(outer: string, inner: string): boolean {
  const way = relative(outer, inner);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`));
}

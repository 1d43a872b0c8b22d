import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxLimits } from "./sandbox.ts";

const MOUNT = "/sys/fs/cgroup";
const OURS = "guildhall";
const ABANDONED_MS = 60_000;

/** Groups of processes that the kernel bounds together. */
export interface ControlGroup {
  /** Who writes its number into these is in it, with whatever it starts. */
  readonly procs: readonly string[];
  remove(): Promise<void>;
}

/** Where groups can be made, by what they bound. */
export interface GroupPlaces {
  readonly pids: string | null;
  readonly memory: string | null;
}

/**
 * Where this process may make groups: as the administrator mostly, else nowhere. The limit on processes that any user can set does not hold
 * for the administrator's number; this one does.
 */
export async function groupPlaces(): Promise<GroupPlaces> {
  const own = await readFile("/proc/self/cgroup", "utf8").catch(() => "");
  const pathOf = (controller: string): string | undefined =>
    own
      .split("\n")
      .find((line) => line.split(":")[1]?.split(",").includes(controller))
      ?.split(":")
      .slice(2)
      .join(":");
  const unified = existsSync(join(MOUNT, "cgroup.controllers")) ? pathOf("") : undefined;
  if (unified !== undefined) {
    const place = await usable(join(MOUNT, unified), ["pids", "memory"]);
    return { pids: place, memory: place };
  }
  const place = async (controller: string): Promise<string | null> => {
    const path = pathOf(controller);
    return path === undefined ? null : usable(join(MOUNT, controller, path), []);
  };
  return { pids: await place("pids"), memory: await place("memory") };
}

async function usable(above: string, controllers: readonly string[]): Promise<string | null> {
  const place = join(above, OURS);
  const enabled = controllers.map((name) => `+${name}`).join(" ");
  try {
    if (enabled !== "") await writeFile(join(above, "cgroup.subtree_control"), enabled);
    await mkdir(place, { recursive: true });
    if (enabled !== "") await writeFile(join(place, "cgroup.subtree_control"), enabled);
    await removeAbandoned(place);
    return place;
  } catch {
    return null;
  }
}

/** Of daemons that were killed. One that is in use cannot be removed; a new one may not be in use yet. */
async function removeAbandoned(place: string): Promise<void> {
  const names = await readdir(place, { withFileTypes: true }).catch(() => []);
  for (const { name } of names.filter((entry) => entry.isDirectory())) {
    const { mtimeMs } = await stat(join(place, name));
    if (Date.now() - mtimeMs > ABANDONED_MS) await rmdir(join(place, name)).catch(() => {});
  }
}

/** Null where none can be made: then only what each process sets for itself holds. */
export async function controlGroup(places: GroupPlaces, name: string, limits: SandboxLimits): Promise<ControlGroup | null> {
  const folders = [...new Set([places.pids, places.memory])].flatMap((place) => (place === null ? [] : [join(place, name)]));
  const set = async (place: string | null, file: string, value: number): Promise<void> => {
    if (place !== null && existsSync(join(place, name, file))) await writeFile(join(place, name, file), String(value));
  };
  try {
    for (const folder of folders) await mkdir(folder);
    await set(places.pids, "pids.max", limits.processes);
    await set(places.memory, "memory.max", limits.memoryBytes);
    await set(places.memory, "memory.limit_in_bytes", limits.memoryBytes);
  } catch {
    await removeAll(folders);
    return null;
  }
  if (folders.length === 0) return null;
  return { procs: folders.map((folder) => join(folder, "cgroup.procs")), remove: () => removeAll(folders) };
}

/** It takes a moment until the last process is really gone. */
async function removeAll(folders: readonly string[]): Promise<void> {
  for (const folder of folders)
    for (let tries = 0; tries < 20; tries++) {
      const gone = await rmdir(folder).then(
        () => true,
        (error: NodeJS.ErrnoException) => error.code === "ENOENT",
      );
      if (gone) break;
      await sleep(50);
    }
}

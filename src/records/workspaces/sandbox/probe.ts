import { spawn } from "node:child_process";
import { existsSync, readlinkSync, statSync } from "node:fs";
import { type SystemFacts, TOP_FOLDERS } from "./bubblewrap-args.ts";
import { type GroupPlaces, groupPlaces } from "./control-groups.ts";

/** Where programs of the system are found; never by the daemon's own PATH. */
export const SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";

export interface SandboxSystem extends SystemFacts {
  readonly shell: string;
  readonly hasPrlimit: boolean;
  readonly groups: GroupPlaces;
  /** Everything inside is done with the administrator's number, though without its rights. */
  readonly isRoot: boolean;
}

/** What this system has to build a sandbox of. Throws in words where bubblewrap cannot even be asked. */
export async function lookAtSystem(bubblewrap: string): Promise<SandboxSystem> {
  const help = await outputOf(bubblewrap, ["--help"]);
  const links = TOP_FOLDERS.flatMap((name) => {
    const words = linkAt(`/${name}`);
    return words === undefined ? [] : [[name, words] as const];
  });
  return {
    links: new Map(links),
    folders: TOP_FOLDERS.filter((name) => linkAt(`/${name}`) === undefined && isFolder(`/${name}`)),
    disablesUserns: help.includes("--disable-userns"),
    shell: shellOf(),
    hasPrlimit: existsSync("/usr/bin/prlimit"),
    groups: await groupPlaces(),
    isRoot: process.getuid?.() === 0,
  };
}

export function shellOf(): string {
  return ["/bin/bash", "/usr/bin/bash"].find((path) => existsSync(path)) ?? "/bin/sh";
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function outputOf(file: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env: { PATH: SYSTEM_PATH }, stdio: ["ignore", "pipe", "ignore"] });
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
    });
    child.on("error", (error: NodeJS.ErrnoException) =>
      reject(new Error(error.code === "ENOENT" ? "bubblewrap (the program bwrap) is not installed" : error.message)),
    );
    child.on("close", () => resolve(text));
  });
}

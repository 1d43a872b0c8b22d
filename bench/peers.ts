import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const FOLDER = join(import.meta.dirname, "peers");

/** The peers have a package of their own, so that nothing of them ever becomes a dependency of ours. */
export function installPeers(progress: (line: string) => void): void {
  if (Object.keys(wanted()).every((name) => existsSync(packageFile(name)) && versionOf(name) === wanted()[name])) return;
  progress("installing the peers (npm ci in bench/peers)");
  execFileSync("npm", ["ci"], { cwd: FOLDER, stdio: ["ignore", "ignore", "inherit"] });
}

function packageFile(name: string): string {
  return join(FOLDER, "node_modules", name, "package.json");
}

function wanted(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(join(FOLDER, "package.json"), "utf8")).dependencies;
}

/** Of an installed peer. */
export function versionOf(name: string): string {
  return JSON.parse(readFileSync(packageFile(name), "utf8")).version;
}

export async function importPeer<Module>(name: string): Promise<Module> {
  const resolved = createRequire(join(FOLDER, "package.json")).resolve(name);
  return (await import(pathToFileURL(resolved).href)) as Module;
}

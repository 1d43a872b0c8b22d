import { realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Failure } from "../../kernel/failure.ts";
import { guardedFiles, type SharedFolder, type Surroundings } from "../../settings/shared-paths.ts";
import { Directory, during, identityOf } from "./directory.ts";
import type { JailKind } from "./jail-kind.ts";
import { codeOf, notFound } from "./refusals.ts";

const MAX_DEPTH = 200;

/**
 * Opens a shared folder and looks again where it lies, by handles: the config was checked when it was loaded, and what its path leads
 * to may have changed since. The folder that was looked at is the one that is used.
 */
export async function openShared(kind: JailKind, folder: SharedFolder, agent: string, around: Surroundings): Promise<Directory> {
  let shared: Directory;
  try {
    shared = await Directory.at(kind, folder.path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) throw notFound(`shared/${folder.name}`);
    throw error;
  }
  try {
    const above = await foldersAbove(shared);
    const places = [around.home, ...(await Promise.all(guardedFiles(around).map(realFolder)))];
    const guarded = await Promise.all(places.map(identitiesAbove));
    if (guarded.flat().includes(shared.identity)) throw refused(folder, "holds the home, or files with settings, secrets or data");
    const [agents, own] = await Promise.all(["agents", `agents/${agent}`].map((path) => identityAt(join(around.home, path))));
    if (agents !== undefined && above.includes(agents) && (own === undefined || !above.includes(own)))
      throw refused(folder, "lies in another agent's private folder");
    return shared;
  } catch (error) {
    await shared.close();
    throw error;
  }
}

function refused({ name }: SharedFolder, why: string): Failure {
  return new Failure("workspace.outside", `the shared folder "${name}" ${why}`, {
    hint: "Correct its path under shared_paths, or remove the link it leads through.",
  });
}

/** Identities of a folder and of all above it, by handles. */
async function foldersAbove(folder: Directory): Promise<string[]> {
  const identities = [folder.identity];
  const climb = async (from: Directory): Promise<void> => {
    if (identities.length > MAX_DEPTH) throw new Failure("workspace.outside", "the shared folder lies too deep");
    await during(from.parent(), async (parent) => {
      if (parent.identity === identities.at(-1)) return;
      identities.push(parent.identity);
      await climb(parent);
    });
  };
  await climb(folder);
  return identities;
}

/** The same for a path of ours, in which no agent can put a link. */
async function identitiesAbove(path: string): Promise<string[]> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return [];
  const paths = [real];
  while (dirname(paths.at(-1) as string) !== paths.at(-1)) paths.push(dirname(paths.at(-1) as string));
  return (await Promise.all(paths.map(identityAt))).filter((identity) => identity !== undefined);
}

async function realFolder(file: string): Promise<string> {
  return dirname(await realpath(file).catch(() => file));
}

async function identityAt(path: string): Promise<string | undefined> {
  return stat(path, { bigint: true }).then(identityOf, () => undefined);
}

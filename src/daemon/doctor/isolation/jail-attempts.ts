import { existsSync, linkSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { asFailure } from "../../../kernel/failure.ts";
import type { Workspace } from "../../../records/workspaces/workspace.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { type Attempt, judge, type Reply } from "./attempt.ts";
import type { Canaries } from "./canaries.ts";
import type { Tenant } from "./plant.ts";

const FOLDER = "attempt";

export interface JailParts {
  readonly workspaces: Workspaces;
  readonly home: string;
}

/** As the attacker's file tools, with links that its own programs could have made. */
export async function jailAttempts(
  { workspaces, home }: JailParts,
  attacker: Tenant,
  victim: Tenant,
  canaries: Canaries,
): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  const mine = join(attacker.folder, FOLDER);
  const add = async (way: string, verb: () => Promise<unknown>): Promise<void> => {
    attempts.push(judge({ kind: "files", way, mustRefuse: true }, await replyOf(verb), canaries));
  };
  const { workspace } = attacker;
  const files = linksToFiles(home, mine, victim);
  const folders = linksToFolders(mine, victim);
  const untouched = keep(join(victim.folder, "secret.txt"), join(victim.folder, "new.txt"));
  let intact = true;
  await workspace.makeDirectory(FOLDER);
  try {
    for (const [name, target] of [...files, ...folders]) symlinkSync(target, join(mine, name));
    for (const name of files.keys()) {
      await add(`read ${name}`, () => workspace.read(`${FOLDER}/${name}`));
      await add(`write ${name}`, () => workspace.write(`${FOLDER}/${name}`, "x"));
    }
    for (const path of pathsTo(home, attacker, victim)) {
      await add(`read ${path.replace(home, "<home>")}`, () => workspace.read(path));
      await add(`write ${path.replace(home, "<home>")}`, () => workspace.write(path, "x"));
    }
    for (const name of folders.keys()) {
      await add(`list ${name}`, () => workspace.list(`${FOLDER}/${name}`));
      await add(`walk ${name}`, () => contentsBelow(workspace, `${FOLDER}/${name}`));
      await add(`read through ${name}`, () => workspace.read(`${FOLDER}/${name}/secret.txt`));
      await add(`write through ${name}`, () => workspace.write(`${FOLDER}/${name}/new.txt`, "x"));
      await add(`remove through ${name}`, () => workspace.remove(`${FOLDER}/${name}/secret.txt`));
      intact = untouched() && intact;
    }
    // A walk is the attacker's to make, and shows the links; what it reads must be its own.
    const walked = await replyOf(() => contentsBelow(workspace, FOLDER));
    attempts.push(judge({ kind: "files", way: "walk with all links in place", mustRefuse: false }, walked, canaries));
    // By itself: a second name of the file would be a reason to refuse all the others.
    linkSync(join(victim.folder, "secret.txt"), join(mine, "hard link"));
    await add("read hard link", () => workspace.read(`${FOLDER}/hard link`));
    await add("write hard link", () => workspace.write(`${FOLDER}/hard link`, "x"));
    rmSync(join(mine, "hard link"));
    await sharedPaths(workspaces, attacker, { own: join(home, "agents", victim.id), workspace: victim.folder }, mine, add);
  } finally {
    rmSync(mine, { recursive: true, force: true });
  }
  attempts.push({
    kind: "files",
    way: "its files afterwards",
    ...(untouched() && intact ? { outcome: "refused", detail: "unchanged" } : { outcome: "accepted", detail: "they were changed" }),
  });
  return attempts;
}

function linksToFiles(home: string, mine: string, { id, folder }: Tenant): Map<string, string> {
  return new Map([
    ["link to the file", join(folder, "secret.txt")],
    ["relative link to the file", relative(mine, join(folder, "secret.txt"))],
    ["link to memory", join(home, "agents", id, "memory", "MEMORY.md")],
    ["dangling link", join(folder, "new.txt")],
    ["link to the config", join(home, "guildhall.yaml")],
    ["link to the store", join(home, "state.db")],
    ["link to the operator's token", join(home, "operator.token")],
  ]);
}

function linksToFolders(mine: string, { folder }: Tenant): Map<string, string> {
  return new Map([
    ["link to the folder", folder],
    ["relative link to the folder", relative(mine, folder)],
    ["link by another link", "relative link to the folder"],
  ]);
}

function pathsTo(home: string, attacker: Tenant, { id, folder }: Tenant): string[] {
  const own = join(home, "agents", id);
  return [
    relative(attacker.folder, join(folder, "secret.txt")),
    `${FOLDER}/../${relative(attacker.folder, join(own, "memory", "MEMORY.md"))}`,
    join(folder, "secret.txt"),
    join(own, "SOUL.md"),
  ];
}

/** Whether the file is as it was and the other still not there; puts both right, so that the next attempts begin alike. */
function keep(file: string, absent: string): () => boolean {
  const before = readFileSync(file);
  return () => {
    const same = existsSync(file) && readFileSync(file).equals(before) && !existsSync(absent);
    if (!same) {
      rmSync(absent, { force: true });
      writeFileSync(file, before);
    }
    return same;
  };
}

/** As if the operator had shared them, by mistake or through a link: the jail does not take the config's word for it. */
async function sharedPaths(
  workspaces: Workspaces,
  attacker: Tenant,
  theirs: { readonly own: string; readonly workspace: string },
  mine: string,
  add: (way: string, verb: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  symlinkSync(theirs.workspace, join(mine, "shared link"));
  const places = {
    "its workspace": theirs.workspace,
    "its private folder": theirs.own,
    "all agents' folder": join(theirs.own, ".."),
    "a link to its workspace": join(mine, "shared link"),
  };
  for (const [name, path] of Object.entries(places)) {
    const sharedPaths = [{ path, mode: "rw" as const, name: "theirs" }];
    const sharing = workspaces.workspace({ id: attacker.id, workspaceScope: "agent", sharedPaths }, null, { configFile: null });
    await add(`shared_paths: ${name}, list`, () => sharing.list("shared/theirs"));
    await add(`shared_paths: ${name}, read`, () => sharing.read("shared/theirs/secret.txt"));
    await add(`shared_paths: ${name}, write`, () => sharing.write("shared/theirs/new.txt", "x"));
  }
}

async function contentsBelow(workspace: Workspace, path: string): Promise<string> {
  const seen: string[] = [];
  await workspace.walk(path, async (found) => {
    const content =
      found.kind === "file"
        ? await found.read().then(
            ({ bytes }) => Buffer.from(bytes).toString("latin1"),
            () => "",
          )
        : "";
    return seen.push(`${found.path}: ${content}`) > 0;
  });
  return seen.join("\n");
}

/** In the words of HTTP, so that one judge is enough. */
async function replyOf(verb: () => Promise<unknown>): Promise<Reply> {
  try {
    const answer = await verb();
    const bytes = (answer as { readonly bytes?: Uint8Array } | undefined)?.bytes;
    return { status: 200, text: bytes ? Buffer.from(bytes).toString("latin1") : (JSON.stringify(answer) ?? "") };
  } catch (error) {
    const { code, message, entry } = asFailure(error);
    return { status: entry.status, text: `"code":"${code}" ${message}` };
  }
}

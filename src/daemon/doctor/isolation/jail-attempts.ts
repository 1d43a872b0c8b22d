import { existsSync, linkSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { asFailure } from "../../../kernel/failure.ts";
import type { Workspace } from "../../../records/workspaces/workspace.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { type Attempt, judge, type Reply } from "./attempt.ts";
import type { Canaries } from "./canaries.ts";
import { type Tenant, WORD } from "./plant.ts";

const FOLDER = "attempt";

/** As the attacker's file tools, with links that its own programs could have made. */
export async function jailAttempts(
  workspaces: Workspaces,
  home: string,
  attacker: Tenant,
  victim: Tenant,
  canaries: Canaries,
): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  const theirs = join(home, "agents", victim.id);
  const mine = join(home, "agents", attacker.id, "workspace", FOLDER);
  const up = `../../../${victim.id}`;
  const add = async (way: string, verb: () => Promise<unknown>): Promise<void> => {
    attempts.push(judge({ kind: "files", way, mustRefuse: true }, await replyOf(verb), canaries));
  };
  const before = readFileSync(join(theirs, "workspace", "secret.txt"), "utf8");
  const { workspace } = attacker;
  await workspace.makeDirectory(FOLDER);
  try {
    for (const [name, target] of Object.entries({
      "link to the file": join(theirs, "workspace", "secret.txt"),
      "relative link to the file": `${up}/workspace/secret.txt`,
      "link to memory": join(theirs, "memory", "MEMORY.md"),
      "dangling link": join(theirs, "workspace", "new.txt"),
      "link to the secrets of all": join(home, "guildhall.yaml"),
      "link to the store": join(home, "state.db"),
      "link to the operator's token": join(home, "operator.token"),
    })) {
      symlinkSync(target, join(mine, name));
      await add(`read ${name}`, () => workspace.read(`${FOLDER}/${name}`));
      await add(`write ${name}`, () => workspace.write(`${FOLDER}/${name}`, "x"));
    }
    for (const [name, target] of Object.entries({
      "link to the folder": join(theirs, "workspace"),
      "relative link": `${up}/workspace`,
      "link to all": theirs,
    })) {
      symlinkSync(target, join(mine, name));
      const inside = name === "link to all" ? "workspace/secret.txt" : "secret.txt";
      await add(`read through ${name}`, () => workspace.read(`${FOLDER}/${name}/${inside}`));
      await add(`list ${name}`, () => workspace.list(`${FOLDER}/${name}`));
      await add(`write through ${name}`, () => workspace.write(`${FOLDER}/${name}/new.txt`, "x"));
      await add(`remove through ${name}`, () => workspace.remove(`${FOLDER}/${name}/${inside}`));
      await add(`walk ${name}`, () => contentsBelow(workspace, `${FOLDER}/${name}`));
    }
    linkSync(join(theirs, "workspace", "secret.txt"), join(mine, "hard link"));
    await add("read a hard link", () => workspace.read(`${FOLDER}/hard link`));
    await add("write a hard link", () => workspace.write(`${FOLDER}/hard link`, "x"));
    for (const path of [
      `../../${victim.id}/workspace/secret.txt`,
      join(theirs, "workspace", "secret.txt"),
      join(theirs, "SOUL.md"),
      `../../${victim.id}/memory/MEMORY.md`,
    ]) {
      await add(`read ${path.replace(home, "<home>")}`, () => workspace.read(path));
      await add(`write ${path.replace(home, "<home>")}`, () => workspace.write(path, "x"));
    }
    // A walk is the attacker's to make, and shows the links; what it reads must be its own.
    const walked = await replyOf(() => contentsBelow(workspace, FOLDER));
    attempts.push(judge({ kind: "files", way: "walk with all links in place", mustRefuse: false }, walked, canaries));
    await sharedPaths(workspaces, attacker, theirs, mine, add);
  } finally {
    rmSync(mine, { recursive: true, force: true });
  }
  const changed =
    [join(theirs, "workspace", "new.txt")].some((path) => existsSync(path)) ||
    readFileSync(join(theirs, "workspace", "secret.txt"), "utf8") !== before;
  attempts.push({
    kind: "files",
    way: "its files afterwards",
    outcome: changed ? "accepted" : "refused",
    detail: changed ? "they were changed" : "unchanged",
  });
  return attempts;
}

/** As if the operator had shared them, by mistake or through a link: the jail does not take the config's word for it. */
async function sharedPaths(
  workspaces: Workspaces,
  attacker: Tenant,
  theirs: string,
  mine: string,
  add: (way: string, verb: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  symlinkSync(join(theirs, "workspace"), join(mine, "shared link"));
  const places = {
    "its workspace": join(theirs, "workspace"),
    "its private folder": theirs,
    "all agents' folder": join(theirs, ".."),
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
            (read) => Buffer.from(read.bytes).toString("latin1"),
            () => "",
          )
        : "";
    return seen.push(`${found.path}: ${content}`) > 0;
  });
  return seen.join("\n");
}

/** In the words of HTTP, so that one judge is enough. What is missing counts as refused: a link that leads nowhere leads nowhere. */
async function replyOf(verb: () => Promise<unknown>): Promise<Reply> {
  try {
    const answer = await verb();
    const bytes = (answer as { readonly bytes?: Uint8Array } | undefined)?.bytes;
    return { status: 200, text: bytes ? Buffer.from(bytes).toString("latin1") : `${WORD} ${JSON.stringify(answer)}` };
  } catch (error) {
    const { code, message, entry } = asFailure(error);
    return { status: entry.status, text: `"code":"${code}" ${message}` };
  }
}

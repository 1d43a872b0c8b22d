import { mkdirSync, opendirSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../kernel/failure.ts";

/** An agent's own folder. Ids are safe as names of folders by their form. */
export function agentHome(home: string, id: string): string {
  return join(home, "agents", id);
}

/** Whether there is anything in its workspace, or in one of its places. What cannot be looked at is not there. */
export function hasFiles(home: string, id: string): boolean {
  return ["workspace", "workspaces"].some((part) => {
    try {
      const folder = opendirSync(join(agentHome(home, id), part));
      try {
        return folder.readSync() !== null;
      } finally {
        folder.closeSync();
      }
    } catch {
      return false;
    }
  });
}

/** Makes what is missing, for this user alone, and touches nothing that is there. */
export function makeAgentHome(home: string, id: string): string {
  const folder = agentHome(home, id);
  try {
    for (const part of ["workspace", "memory", "skills"]) mkdirSync(join(folder, part), { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure("home.unusable", `${folder} cannot be made (${code})`, { cause: error });
  }
  return folder;
}

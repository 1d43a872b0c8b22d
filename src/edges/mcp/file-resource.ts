import { posix } from "node:path";
import { fileResource, type Workspace } from "../../contract/workspace.ts";
import { Failure } from "../../kernel/failure.ts";

/** Signs that other tools take for patterns, and that would claim nothing here. */
const FOREIGN_PATTERN = /[?{}]/;

/**
 * The resource of a file or pattern, as the agent names it: by its path in the repository, so that all worktrees and clones of one
 * repository mean the same thing. Only the text is looked at: the files are on the agent's side.
 */
export function resourceOfFile(workspace: Workspace | undefined, file: string): string {
  if (!workspace)
    throw new Failure("request.malformed", "files: this connection has not said in which repository it works", {
      hint: "Claim with `resource` instead, start `guildhall mcp` in the repository, or send the header Guildhall-Workspace.",
    });
  if (FOREIGN_PATTERN.test(file))
    throw new Failure("request.malformed", `files: "${file}" is no pattern here; only * (within one name) and ** (any folders) are`);
  const path = posix.normalize(withinTop(workspace, file.replaceAll("\\", "/")));
  if (path === ".." || path.startsWith("../") || path.startsWith("/")) throw outside(workspace, file);
  const trimmed = path.replace(/\/+$/, "");
  // A folder that is named as one stands for everything in it.
  const everything = path.endsWith("/") || trimmed === "." || trimmed === "";
  const inside = trimmed === "." ? "" : trimmed;
  return fileResource(workspace.repository, everything ? posix.join(inside, "**") : inside);
}

function withinTop(workspace: Workspace, file: string): string {
  if (!file.startsWith("/") && !/^[A-Za-z]:\//.test(file)) return posix.join(workspace.prefix, file);
  for (const top of workspace.tops) {
    const folder = top.replaceAll("\\", "/").replace(/\/+$/, "");
    const normal = posix.normalize(file);
    if (normal === folder) return "./";
    if (normal.startsWith(`${folder}/`)) return normal.slice(folder.length + 1);
  }
  throw outside(workspace, file);
}

function outside({ tops }: Workspace, file: string): Failure {
  return new Failure("request.malformed", `files: "${file}" lies outside ${tops[0]}`, {
    hint: "Give a path inside the repository, or claim something else with `resource`.",
  });
}

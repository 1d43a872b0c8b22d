import { Failure, isFailure } from "../../kernel/failure.ts";
import type { EntryKind } from "./directory.ts";
import { quoted } from "./workspace-path.ts";

export function refuseLink(path: string): Failure {
  return new Failure("workspace.outside", `${quoted(path)} is or leads through a link that is not followed`, {
    hint: "Links are followed only to what is inside the workspace, and never to be written through. Remove the link, or use another path.",
  });
}

export function refuseKind(path: string, kind: EntryKind, wanted: string): Failure {
  if (kind === "link") return refuseLink(path);
  if (kind === "other") return new Failure("workspace.outside", `${quoted(path)} is neither a file nor a folder`);
  return new Failure("workspace.conflict", `${quoted(path)} is a ${kind === "file" ? "file" : "folder"}, not ${wanted}`);
}

export function notFound(path: string): Failure {
  return new Failure("workspace.not_found", `there is no ${quoted(path)}`);
}

export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException | undefined)?.code ?? "";
}

/** What the operating system said, in our words and about the path that was asked for: never about where the workspace lies. */
export async function about<Result>(path: string, body: () => Promise<Result>): Promise<Result> {
  try {
    return await body();
  } catch (error) {
    if (isFailure(error)) throw error;
    throw inWords(path, error);
  }
}

function inWords(path: string, error: unknown): Failure {
  switch (codeOf(error)) {
    case "ENOENT":
      return notFound(path);
    case "ELOOP":
      return refuseLink(path);
    case "ENOTDIR":
      return new Failure("workspace.conflict", `a part of ${quoted(path)} is not a folder`);
    case "EISDIR":
      return new Failure("workspace.conflict", `${quoted(path)} is a folder`);
    case "EEXIST":
      return new Failure("workspace.conflict", `${quoted(path)} exists already`);
    case "ENOTEMPTY":
      return new Failure("workspace.conflict", `${quoted(path)} is not empty`);
    case "EINVAL":
      return new Failure("workspace.conflict", `${quoted(path)} cannot be moved into itself`);
    case "EXDEV":
      return new Failure("workspace.conflict", `${quoted(path)} is on another disk; copy it instead`);
    case "ENAMETOOLONG":
      return new Failure("workspace.malformed", `${quoted(path)} is too long`);
    case "ENOSPC":
    case "EDQUOT":
      return new Failure("workspace.full", `no space is left for ${quoted(path)}`);
    case "EROFS":
    case "EACCES":
    case "EPERM":
      return new Failure("workspace.refused", `this user may not do that to ${quoted(path)}`);
    case "EMFILE":
    case "ENFILE":
      return new Failure("request.busy", "too many files are open");
    default:
      return new Failure("workspace.refused", `${quoted(path)} could not be used (${codeOf(error) || "unknown reason"})`, { cause: error });
  }
}

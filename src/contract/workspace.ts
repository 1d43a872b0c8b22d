import { z } from "zod";
import { text } from "./text.ts";

/** Where an outside agent works, as its bridge sends it with every request: percent-encoded JSON. */
export const WORKSPACE_HEADER = "guildhall-workspace";

/** `<name>~<8 hex digits>`: the same for every clone and worktree of one repository. */
const repository = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}~[0-9a-f]{8}$/,
    "expected a repository such as name~0123abcd, as `guildhall guard where` prints it",
  );

export const workspace = z.strictObject({
  repository,
  /** The top folder under each name by which the agent may know it. */
  tops: z.array(text(4_096)).min(1).max(4),
  /** Where the agent stands below the top folder: "" or "packages/a/". */
  prefix: z.string().max(4_096).default(""),
});
export type Workspace = z.output<typeof workspace>;

export function encodeWorkspace(value: Workspace): string {
  return encodeURIComponent(JSON.stringify(value));
}

/** Undefined where the header is missing or says nothing sensible. */
export function decodeWorkspace(header: string | null | undefined): Workspace | undefined {
  if (!header) return undefined;
  try {
    return workspace.safeParse(JSON.parse(decodeURIComponent(header))).data;
  } catch {
    return undefined;
  }
}

/** The name under which a file of a repository is claimed. */
export function fileResource(repository: string, path: string): string {
  return `repo/${repository}/${path}`;
}

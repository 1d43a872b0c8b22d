import { z } from "zod";
import { Failure, isFailure } from "../../../kernel/failure.ts";
import type { Workspace } from "../../../records/workspaces/workspace.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { defineTool, type Tool } from "../tool.ts";
import { diffOf } from "./diff.ts";
import { workspaceOf } from "./workspace-of.ts";

const COMPARED = 200_000;

/** Writing the same again is the same. */
export function fileWriteTool(workspaces: Workspaces): Tool {
  return defineTool({
    name: "file_write",
    description:
      "Write a file of the workspace, with the folders above it. What it held before is replaced as a whole; to change a part, use file_edit.",
    parameters: z.strictObject({
      path: z.string().min(1).max(4_096).describe("In the workspace: notes/plan.md."),
      content: z.string().describe("All that it will hold."),
    }),
    effect: "keyed",
    run: async ({ path, content }, context) => {
      const workspace = workspaceOf(workspaces, context);
      const before = await contentOf(workspace, path);
      const { created, size } = await workspace.write(path, content);
      const diff = before === undefined ? "" : diffOf(before, content);
      return {
        output: `${created ? "Made" : "Replaced"} ${path} (${size} bytes).`,
        told: { path, bytes: size, created, ...(diff === "" ? {} : { diff }) },
      };
    },
  });
}

/** Undefined: there is no such file, or nothing that can be compared. What is wrong with the path is said by the write. */
async function contentOf(workspace: Workspace, path: string): Promise<string | undefined> {
  try {
    const { bytes, more } = await workspace.read(path, { limit: COMPARED });
    return more || bytes.includes(0) ? undefined : Buffer.from(bytes).toString("utf8");
  } catch (error) {
    if (isFailure(error)) return undefined;
    throw error;
  }
}

/** A text that is well formed, or a refusal: what is not text would be changed by writing it back. */
export async function textOf(workspace: Workspace, path: string): Promise<string> {
  const { bytes } = await workspace.read(path);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Failure("tool.failed", `${path} is no text in UTF-8`, { hint: "Change it with a program." });
  }
}

import { z } from "zod";
import type { EntryKind } from "../../../records/workspaces/directory.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { defineTool, type Tool } from "../tool.ts";
import { workspaceOf } from "./workspace-of.ts";

const SHOWN = 500;
const MARKS: Readonly<Record<EntryKind, string>> = { directory: "/", link: "@", file: "", other: "?" };

export function fileListTool(workspaces: Workspaces): Tool {
  return defineTool({
    name: "file_list",
    description: "List a folder of the workspace: names, folders with / at their end, links with @.",
    parameters: z.strictObject({ path: z.string().min(1).max(4_096).default(".").describe("The folder; the whole workspace without it.") }),
    effect: "pure",
    run: async ({ path }, context) => {
      const { entries, more, unusable } = await workspaceOf(workspaces, context).list(path);
      const shown = entries.slice(0, SHOWN).map(({ name, kind }) => `${name}${MARKS[kind]}`);
      const left = entries.length - shown.length;
      const notes = [
        ...(entries.length === 0 ? ["(empty)"] : []),
        ...(left > 0 || more
          ? [`[${more ? `more than ${left}` : left} more: list a folder in it, or use file_search with a pattern of names]`]
          : []),
        ...(unusable > 0 ? [`[${unusable} whose names cannot be written]`] : []),
      ];
      return { output: [...shown, ...notes].join("\n"), told: { path, entries: entries.length } };
    },
  });
}

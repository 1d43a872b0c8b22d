import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import type { Tool } from "../tool.ts";
import { fileEditTool } from "./file-edit.ts";
import { fileListTool } from "./file-list.ts";
import { fileReadTool } from "./file-read.ts";
import { fileSearchTool } from "./file-search.ts";
import { fileWriteTool } from "./file-write.ts";

/** `file_read`, `file_write`, `file_edit`, `file_search` and `file_list`: all by the jail of the agent's workspace. */
export function fileTools(workspaces: Workspaces): Tool[] {
  return [fileReadTool, fileWriteTool, fileEditTool, fileSearchTool, fileListTool].map((tool) => tool(workspaces));
}

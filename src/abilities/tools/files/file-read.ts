import { z } from "zod";
import { Failure } from "../../../kernel/failure.ts";
import type { Workspace } from "../../../records/workspaces/workspace.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { type CallContext, defineTool, type Tool, type ToolOutcome } from "../tool.ts";
import { imageType } from "./image-of.ts";
import { labelsOf } from "./secret-files.ts";
import { workspaceOf } from "./workspace-of.ts";

const MAX_LINES = 2_000;
/** Less than a call may say, so that what is read in parts is not put away in a file again. */
const MAX_CHARACTERS = 26_000;
const PART = 1024 * 1024;
/** Providers take about 5 MB of an image in base64. */
const MAX_IMAGE_BYTES = 3_700_000;

const parameters = z.strictObject({
  path: z.string().min(1).max(4_096).describe("Of the file, in the workspace: notes/plan.md. Shared folders are below shared/."),
  offset: z.int().min(1).default(1).describe("The first line to read."),
  limit: z.int().min(1).max(MAX_LINES).default(MAX_LINES).describe("How many lines."),
});

export function fileReadTool(workspaces: Workspaces): Tool {
  return defineTool({
    name: "file_read",
    description:
      "Read a file of the workspace. Text comes with the numbers of its lines, at most 2000 at a time: go on with offset. Images (png, jpeg, gif, webp) are shown to you if you can see.",
    parameters,
    effect: "pure",
    run: async ({ path, offset, limit }, context) => {
      const workspace = workspaceOf(workspaces, context);
      const first = await workspace.read(path, { offset: 0, limit: PART });
      const type = imageType(first.bytes);
      if (type !== undefined) return image(workspace, path, type, first.size);
      if (first.bytes.subarray(0, 8_192).includes(0))
        throw new Failure("tool.failed", `${path} is no text (${first.size} bytes)`, { hint: "Look at it with a program." });
      return text(workspace, path, offset, limit, context);
    },
  });
}

async function image(workspace: Workspace, path: string, mediaType: string, size: number): Promise<ToolOutcome> {
  if (size > MAX_IMAGE_BYTES)
    throw new Failure("workspace.too_large", `${path} is an image of ${size} bytes; at most ${MAX_IMAGE_BYTES} can be shown`, {
      hint: "Make it smaller first.",
    });
  const { bytes } = await workspace.read(path);
  const data = Buffer.from(bytes).toString("base64");
  return { output: `${path}: an image (${mediaType}, ${size} bytes).`, images: [{ mediaType, data }], told: { path, bytes: size } };
}

async function text(workspace: Workspace, path: string, offset: number, limit: number, { signal }: CallContext): Promise<ToolOutcome> {
  const shown: string[] = [];
  let characters = 0;
  let number = 0;
  let isFull = false;
  for await (const line of linesOf(workspace, path, signal)) {
    number++;
    if (number < offset) continue;
    const written = `${number}\t${line}`;
    const room = MAX_CHARACTERS - characters;
    isFull = shown.length === limit || (shown.length > 0 && written.length > room);
    if (isFull) break;
    shown.push(written.length > room ? `${written.slice(0, room)}[… ${written.length - room} more characters in this line …]` : written);
    characters += written.length + 1;
  }
  const last = offset + shown.length - 1;
  if (shown.length === 0 && offset > 1)
    throw new Failure("tool.failed", `${path} has ${number} lines`, { hint: "Read from an earlier one." });
  const content = shown.join("\n");
  const note = isFull ? `\n[there is more: go on with offset ${last + 1}]` : shown.length === 0 ? "(empty)" : "";
  return { output: `${content}${note}`, ...labelsOf(path, content), told: { path, lines: shown.length } };
}

/** Read in parts, so that also a very long file can be paged through. */
async function* linesOf(workspace: Workspace, path: string, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for (let at = 0; ; ) {
    signal.throwIfAborted();
    const { bytes, more } = await workspace.read(path, { offset: at, limit: PART });
    at += bytes.length;
    const isLast = !more || bytes.length === 0;
    const lines = (rest + decoder.decode(bytes, { stream: !isLast })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
    // A line without an end is not gathered for ever.
    if (rest.length > PART) {
      yield rest;
      rest = "";
    }
    if (isLast) break;
  }
  if (rest !== "") yield rest;
}

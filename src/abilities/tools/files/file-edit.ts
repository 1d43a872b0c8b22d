import { z } from "zod";
import { sha256 } from "../../../kernel/canonical-json.ts";
import { Failure } from "../../../kernel/failure.ts";
import { editDistance } from "../../../kernel/nearest.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { defineTool, type Tool, type ToolOutcome } from "../tool.ts";
import { diffOf } from "./diff.ts";
import { type EditRecord, readRecord, writeRecord } from "./edit-record.ts";
import { textOf } from "./file-write.ts";
import { labelsOf } from "./secret-files.ts";
import { workspaceOf } from "./workspace-of.ts";

const parameters = z.strictObject({
  path: z.string().min(1).max(4_096).describe("Of the file, in the workspace."),
  old: z.string().min(1).describe("The text to replace, exactly as it stands there, with enough around it to be there once."),
  new: z.string().describe("What stands there instead."),
});

export function fileEditTool(workspaces: Workspaces): Tool {
  return defineTool({
    name: "file_edit",
    description:
      "Replace a text in a file of the workspace by another. The old text must stand there exactly once, with the same spaces and line ends.",
    parameters,
    effect: "keyed",
    run: async ({ path, old, new: replacement }, context) => {
      const workspace = workspaceOf(workspaces, context);
      const record = await readRecord(workspace, context.key);
      const content = await textOf(workspace, path);
      const now = sha256(content);
      // Made by an attempt that did not live to tell.
      if (record?.path === path && record.after === now) return done(path, record.diff, content);
      if (record?.path === path && record.before !== now)
        throw new Failure("workspace.conflict", `${path} was changed while the edit was made: nobody can tell whether it was`, {
          hint: "Read the file, and edit it anew if it is still needed.",
        });
      const changed = replaced(path, content, old, replacement);
      const diff = diffOf(content, changed);
      const planned: EditRecord = { path, before: now, after: sha256(changed), diff };
      await writeRecord(workspace, context.key, planned);
      await workspace.write(path, changed);
      return done(path, diff, changed);
    },
  });
}

function done(path: string, diff: string, content: string): ToolOutcome {
  return { output: `Changed ${path}:\n${diff}`, ...labelsOf(path, content), told: { path, diff } };
}

function replaced(path: string, content: string, old: string, replacement: string): string {
  const at = content.indexOf(old);
  if (at < 0)
    throw new Failure("workspace.conflict", `the text to replace is not in ${path}; ${nearestTo(content, old)}`, {
      hint: "Copy it exactly as it stands there.",
    });
  const count = content.split(old).length - 1;
  if (count > 1 || content.indexOf(old, at + 1) >= 0)
    throw new Failure("workspace.conflict", `the text to replace is in ${path} ${Math.max(count, 2)} times`, {
      hint: "Take more of what stands around the one you mean.",
    });
  return content.slice(0, at) + replacement + content.slice(at + old.length);
}

const COMPARED_LINES = 5_000;
const COMPARED_CHARACTERS = 200;
/** Measuring how far apart two lines are takes long: only for those that have most in common. */
const MEASURED_LINES = 40;
const SHOWN = 3;

/** The lines that are most like the first line of what was looked for. */
function nearestTo(content: string, old: string): string {
  const wanted = firstLine(old).slice(0, COMPARED_CHARACTERS);
  const threes = threesOf(wanted);
  const scored = content
    .split("\n", COMPARED_LINES)
    .map((line, index) => ({ line, number: index + 1, trimmed: line.trim().slice(0, COMPARED_CHARACTERS) }))
    .map((one) => ({ ...one, common: commonOf(one.trimmed, wanted, threes) }))
    .sort((a, b) => b.common - a.common || a.number - b.number)
    .slice(0, MEASURED_LINES)
    .map((one) => ({ ...one, distance: distanceOf(one.trimmed, wanted) }))
    .filter(({ distance }) => distance <= Math.max(2, wanted.length / 2))
    .sort((a, b) => a.distance - b.distance || a.number - b.number)
    .slice(0, SHOWN);
  if (scored.length === 0) return "no line of it is like the first line of that text";
  return `the nearest lines are\n${scored.map(({ line, number }) => `${number}\t${line.slice(0, COMPARED_CHARACTERS)}`).join("\n")}\n`;
}

/** Every three characters that follow each other. */
function threesOf(text: string): Set<string> {
  return new Set(Array.from({ length: Math.max(0, text.length - 2) }, (_, index) => text.slice(index, index + 3)));
}

function commonOf(line: string, wanted: string, threes: ReadonlySet<string>): number {
  if (holdsOther(line, wanted)) return Number.POSITIVE_INFINITY;
  // A short line cannot have much in common with anything: as near as it could be counts too.
  let common = -Math.abs(line.length - wanted.length) / 1_000;
  for (let at = 0; at + 3 <= line.length; at++) if (threes.has(line.slice(at, at + 3))) common++;
  return common;
}

function holdsOther(line: string, wanted: string): boolean {
  return line.includes(wanted) || (line.length > 3 && wanted.includes(line));
}

function firstLine(text: string): string {
  return (
    text
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.trim() ?? text
  );
}

function distanceOf(line: string, wanted: string): number {
  return holdsOther(line, wanted) ? 0 : editDistance(line, wanted);
}

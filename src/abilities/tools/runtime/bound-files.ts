import { sha256 } from "../../../kernel/canonical-json.ts";
import { isFailure } from "../../../kernel/failure.ts";
import type { FileContent } from "../../../records/workspaces/read-file.ts";
import type { Workspace } from "../../../records/workspaces/workspace.ts";

const MAX_FILES = 100;
const MAX_LOOKS = 1_000;
const MAX_BYTES = 10 * 1024 * 1024;
/** Looked through for names, of all files together: nobody else is served meanwhile. */
const MAX_TEXT = 1024 * 1024;
const MAX_DEPTH = 3;
/** Stands among the names, so that whoever approves sees it. */
const MORE = "(more)";
/** What programs read without being told. */
const UNTOLD: Readonly<Record<string, readonly string[]>> = {
  make: ["Makefile", "makefile", "GNUmakefile"],
  npm: ["package.json"],
  npx: ["package.json"],
  pnpm: ["package.json"],
  yarn: ["package.json"],
  just: ["justfile", "Justfile"],
  docker: ["Dockerfile"],
};

/**
 * The files that a command names, and those that these name, with what they hold: an approval of the command is one of these. Found by their
 * names in the text, so that it is rather too many than too few; a file whose name is put together while it runs is not found.
 */
export async function boundFiles(workspace: Workspace, command: string): Promise<Record<string, string>> {
  const found = new Map<string, string>();
  const folders = new Set(["."]);
  const seen = new Set<string>();
  let text = MAX_TEXT;
  let isWhole = true;
  /** A part of a text, as much as may still be looked through. */
  const partOf = (bytes: Uint8Array): string => {
    const part = Buffer.from(bytes.subarray(0, text)).toString("utf8");
    if (bytes.length > text) isWhole = false;
    text -= Math.min(bytes.length, text);
    return part;
  };
  const look = async (part: string, depth: number): Promise<void> => {
    const inner: string[] = [];
    for (const word of wordsOf(part))
      for (const path of word.startsWith("/") ? [word] : [...folders].map((folder) => (folder === "." ? word : `${folder}/${word}`))) {
        if (seen.has(path)) continue;
        if (seen.size >= MAX_LOOKS || found.size >= MAX_FILES) {
          isWhole = false;
          return;
        }
        seen.add(path);
        const content = await contentOf(workspace, path);
        if (content === "folder") folders.add(path);
        if (content === undefined || content === "folder") continue;
        found.set(path, sha256(content.bytes).slice(0, 16));
        if (content.more) isWhole = false;
        if (path.includes("/")) folders.add(path.slice(0, path.lastIndexOf("/")) || ".");
        if (!content.bytes.subarray(0, 8_192).includes(0)) inner.push(partOf(content.bytes));
      }
    if (depth < MAX_DEPTH) for (const script of inner) await look(script, depth + 1);
  };
  await look(command, 0);
  if (!isWhole) found.set(MORE, "not everything that is named could be looked at");
  return Object.fromEntries([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function wordsOf(text: string): string[] {
  const words = text.match(/[^\s'"`;|&<>(){}$=,]+/g) ?? [];
  const named = words
    .map((word) => word.replace(/^\.\/+/, "").replace(/[.:]+$/, ""))
    .filter((word) => /[A-Za-z0-9]/.test(word) && word.length < 300);
  return [...new Set(named.flatMap((word) => [word, ...(Object.hasOwn(UNTOLD, word) ? (UNTOLD[word] as string[]) : [])]))];
}

async function contentOf(workspace: Workspace, path: string): Promise<FileContent | "folder" | undefined> {
  try {
    const { kind } = await workspace.stat(path);
    if (kind === "directory") return "folder";
    return kind === "file" || kind === "link" ? await workspace.read(path, { limit: MAX_BYTES }) : undefined;
  } catch (error) {
    if (isFailure(error)) return undefined;
    throw error;
  }
}
